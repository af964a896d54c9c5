// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/signal"
	"path"
	"strings"
	"syscall"

	"github.com/cli/browser"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/live/serverdoctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/hosting/memory"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/serving"
)

type consoleOptions struct {
	clusterflags.Flags
	bindAddress string
	address     netip.Addr
	port        uint16
	noBrowser   bool
	config      string
	server      *serve.Config

	proxy             access.Proxy
	networks          []string
	clientCA          string
	commonNames       []string
	certFile, keyFile string
	prefix            string
}

func newConsoleCommand() *cobra.Command {
	o := consoleOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "console [--port PORT]",
		Short: "Serve the web console",
		Long: "Serve web pages about admission in a cluster on a loopback address of this machine, and open them in the\n" +
			"browser. The pages use your kubeconfig and your permissions, are read-only, and mark what you may not read.\n" +
			"As with 'kubectl proxy', every user of this machine can open them as long as the command runs. Press\n" +
			"Ctrl-C to stop it.\n\n" +
			"With --user-header it serves users that a proxy has authenticated, for example in a cluster, and reads with\n" +
			"the permissions of each: it impersonates the user in the header. Only trusted proxies may send it.",
		Example: "  sallyport console\n\n" +
			"  # of another cluster, at a fixed address\n" +
			"  sallyport console --context staging --namespace team-a --port 8765 --no-browser\n\n" +
			"  # behind the gateway of Kubeflow\n" +
			"  sallyport console --bind-address 0.0.0.0 --port 8080 --user-header kubeflow-userid --trusted-networks 10.0.0.0/8",
		Args:    cli.NoArguments("choose a namespace with --namespace"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    cli.Interruptible(o.run),
	}
	cmd.SetUsageFunc(cli.PrintUsage)
	o.AddNamespacedFlags(cmd)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Console", func() {
		flags.StringVar(&o.bindAddress, "bind-address", "127.0.0.1", "`address` to serve the console on; one that is not a loopback address requires --user-header")
		flags.Uint16Var(&o.port, "port", 0, "`port` to listen on; 0 for any free port")
		flags.BoolVar(&o.noBrowser, "no-browser", false, "print the address without opening a browser")
	})
	cli.AddFlagGroup(cmd, "Behind a proxy", func() {
		flags.StringVar(&o.proxy.UserHeader, "user-header", "", "`name` of the header with the user, such as kubeflow-userid or X-Forwarded-User")
		flags.StringVar(&o.proxy.GroupsHeader, "groups-header", "", "`name` of the header with the user's groups, separated by commas")
		flags.StringSliceVar(&o.networks, "trusted-networks", nil, "`networks` of the proxies that may send these headers, such as 10.0.0.0/8")
		flags.StringVar(&o.clientCA, "client-ca-file", "", "`file` with the PEM-encoded CA bundle that verifies the proxies' client certificates; reloaded when it changes")
		flags.StringSliceVar(&o.commonNames, "client-common-names", nil, "accepted common `names` of client certificates; if empty, any certificate signed by the CA is accepted")
		flags.StringVar(&o.certFile, "tls-cert-file", "", "`file` with the PEM-encoded serving certificate and its chain; without it the console serves plain HTTP")
		flags.StringVar(&o.keyFile, "tls-private-key-file", "", "`file` with the PEM-encoded private key of the certificate")
		flags.StringVar(&o.prefix, "prefix", "", "`path` below which the proxy serves the console, such as /sallyport")
		for _, file := range []string{"client-ca-file", "tls-cert-file", "tls-private-key-file"} {
			cli.CompleteFiles(cmd, file)
		}
		cli.CompleteChoices(cmd, "user-header", []string{"kubeflow-userid", "X-Forwarded-User", "X-Auth-Request-User"})
	})
	cli.AddFlagGroup(cmd, "Server configuration", func() {
		addConfigFlag(cmd, &o.config)
	})
	return cmd
}

// behind reports whether the console serves the users of a proxy.
func (o *consoleOptions) behind() bool { return o.proxy.UserHeader != "" }

// validate reports every problem.
func (o *consoleOptions) validate() error {
	var errs []error
	var err error
	if o.address, err = netip.ParseAddr(o.bindAddress); err != nil {
		return fmt.Errorf("--bind-address %q: write an IP address such as 127.0.0.1", o.bindAddress)
	}
	for _, network := range o.networks {
		parsed, err := netip.ParsePrefix(network)
		if err != nil {
			errs = append(errs, fmt.Errorf("--trusted-networks %q: write a network such as 10.0.0.0/8", network))
		}
		o.proxy.Networks = append(o.proxy.Networks, parsed)
	}
	switch {
	case !o.behind() && (o.proxy.GroupsHeader != "" || len(o.networks) > 0 || o.clientCA != "" || o.certFile != "" || o.prefix != ""):
		errs = append(errs, errors.New("--groups-header, --trusted-networks, --client-ca-file, --tls-cert-file and --prefix are only valid with --user-header"))
	case !o.behind() && !o.address.IsLoopback():
		errs = append(errs, fmt.Errorf("--bind-address %s: others would read with your rights; set --user-header, or choose a loopback address", o.bindAddress))
	case o.behind() && len(o.networks) == 0 && o.clientCA == "":
		errs = append(errs, errors.New("--user-header: set --trusted-networks or --client-ca-file too, because otherwise any client can send the header"))
	}
	if (o.certFile == "") != (o.keyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file belong together"))
	}
	if o.clientCA != "" && o.certFile == "" {
		errs = append(errs, errors.New("--client-ca-file: set --tls-cert-file too, because client certificates need TLS"))
	}
	if len(o.commonNames) > 0 && o.clientCA == "" {
		errs = append(errs, errors.New("--client-common-names is only valid with --client-ca-file"))
	}
	if o.prefix != "" && (!strings.HasPrefix(o.prefix, "/") || path.Clean(o.prefix) != o.prefix || o.prefix == "/") {
		errs = append(errs, fmt.Errorf("--prefix %q: write a path such as /sallyport", o.prefix))
	}
	config, err := serve.Load(o.config, nil, serve.OfDeployment...)
	if config != nil {
		err = errors.Join(err, config.Select("poddefault"))
	}
	o.server = config
	return errors.Join(append(errs, err)...)
}

func (o *consoleOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	c, err := o.Open()
	if err != nil {
		return err
	}
	known := authorityFlags()
	options := console.Options{
		Config: c.Config, Namespace: c.Namespace, Doctor: serverdoctor.Options(), Version: buildVersion(), Dataset: *serve.Dataset(o.server),
		Webhooks: func(source match.Source) ([]admission.Webhook, error) {
			return o.server.Define(serve.From(serve.PodDefaultSources{PodDefaults: source, Authors: serve.Anybody{}}))
		},
	}
	options.Doctor.Registration, options.Doctor.Certificate, options.Doctor.MetricsPort = known.Registration, known.Certificate, doctor.DefaultMetricsPort
	address := netip.AddrPortFrom(o.address, o.port)
	if o.behind() {
		return o.runBehind(ctx, cmd, &options, address)
	}
	if options.Clusters, err = o.Contexts(); err != nil {
		return err
	}
	options.Connect = func(name string) (*rest.Config, string, error) {
		chosen := o.Flags
		chosen.Context, chosen.Namespace = name, ""
		c, err := chosen.Open()
		if err != nil {
			return nil, "", err
		}
		return c.Config, c.Namespace, nil
	}
	return options.RunLocal(ctx, address, func(url string) {
		manifest.Note(cmd.ErrOrStderr(), "the console is at %s until you press Ctrl-C", url)
		if !o.noBrowser {
			go openBrowser(url, cmd.ErrOrStderr())
		}
	})
}

// runBehind serves the users of a proxy. It ends on SIGTERM too, as in a pod.
func (o *consoleOptions) runBehind(ctx context.Context, cmd *cobra.Command, options *console.Options, address netip.AddrPort) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	defer memory.Manage()()
	var err error
	if o.clientCA != "" {
		if o.proxy.ClientCA, err = serving.NewClientCA(serving.ClientCAOptions{File: o.clientCA, CommonNames: o.commonNames}); err != nil {
			return err
		}
	}
	var files *certificate.Files
	if o.certFile != "" {
		if files, err = certificate.NewFiles(certificate.FilesOptions{CertFile: o.certFile, KeyFile: o.keyFile}); err != nil {
			return err
		}
	}
	return options.RunBehind(ctx, &o.proxy, address, o.prefix, files, func(url string) {
		manifest.Note(cmd.ErrOrStderr(), "the console serves %s", url)
	})
}

// openBrowser opens a URL. Some browsers end only when they are closed.
func openBrowser(url string, notes io.Writer) {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	if err := browser.OpenURL(url); err != nil {
		manifest.Note(notes, "note: no browser could be opened: %v", err)
	}
}
