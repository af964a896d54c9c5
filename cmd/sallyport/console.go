// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cli/browser"
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/console"
	"github.com/sallyport-io/sallyport/internal/doctor"
	"github.com/sallyport-io/sallyport/internal/install/deployment"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/server"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

type consoleOptions struct {
	cluster.Flags
	port      int
	noBrowser bool
	config    string
	server    *server.Config
}

func newConsoleCommand() *cobra.Command {
	o := consoleOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "console [--port PORT]",
		Short: "Show in a browser who changes what: webhooks, PodDefaults, and what is wrong",
		Long: "Serve web pages about admission in a cluster on a loopback address of this machine, and open them in the\n" +
			"browser. The pages are read with your kubeconfig and your rights, and change nothing: what you may not\n" +
			"read is shown as such. As with 'kubectl proxy', every user of this machine can open them as long as the\n" +
			"command runs. It ends with Ctrl-C.",
		Example: "  sallyport console\n\n" +
			"  # of another cluster, at a fixed address\n" +
			"  sallyport console --context staging --namespace team-a --port 8765 --no-browser",
		Args:    cli.NoArguments("choose a namespace with --namespace"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    cli.Interruptible(o.run),
	}
	o.AddNamespacedFlags(cmd)
	cli.AddFlagGroup(cmd, "Console", func() {
		cmd.Flags().IntVar(&o.port, "port", 0, "`port` on the loopback address; 0 for any free port")
		cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "print the address and open no browser")
	})
	cli.AddFlagGroup(cmd, "Server configuration", func() {
		addConfigFlag(cmd, &o.config)
	})
	return cmd
}

// validate reports every problem.
func (o *consoleOptions) validate() error {
	var errs []error
	if o.port < 0 || o.port > 65535 {
		errs = append(errs, fmt.Errorf("--port %d is outside 0 to 65535", o.port))
	}
	config, err := server.Load(o.config, nil, server.OfDeployment...)
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
		Config: c.Config, Namespace: c.Namespace, Doctor: deployment.Doctor(), Version: buildVersion(),
		Webhooks: func(source poddefault.Source) ([]admission.Webhook, error) {
			return o.server.Define(server.Sources{PodDefaults: source, Authors: server.Anybody{}})
		},
	}
	options.Doctor.Registration, options.Doctor.Certificate, options.Doctor.MetricsPort = known.Server, known.Certificates, doctor.DefaultMetricsPort
	return options.RunLocal(ctx, o.port, func(url string) {
		manifest.Note(cmd.ErrOrStderr(), "the console is at %s until you press Ctrl-C", url)
		if !o.noBrowser {
			go openBrowser(url, cmd.ErrOrStderr())
		}
	})
}

// openBrowser opens a URL. Some browsers end only when they are closed.
func openBrowser(url string, notes io.Writer) {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	if err := browser.OpenURL(url); err != nil {
		manifest.Note(notes, "note: no browser could be opened: %v", err)
	}
}
