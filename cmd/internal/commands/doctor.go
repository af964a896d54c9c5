// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
)

type doctorOptions struct {
	clusterflags.AuthorityFlags
	doctor.Options
	output string
}

// Doctor is the command doctor of a program. The flags have the defaults of its server; the options
// are what the program knows about the server, and the default service account.
func Doctor(of clusterflags.AuthorityFlags, known doctor.Options) *cobra.Command {
	o := doctorOptions{AuthorityFlags: of, Options: known}
	name := known.Program
	cmd := &cobra.Command{
		Use:   "doctor [--service NAMESPACE/NAME]",
		Short: "Diagnose webhooks that do not work",
		Long: "Check an installation from outside, without changing it: the API server and its clock, the webhook\n" +
			"configurations, the Service and its replicas, the certificate and every caBundle, the permissions of the\n" +
			"server, failed calls, and static admission manifests. The server is found through the webhook\n" +
			"configurations. Checks that are not permitted are reported as such. Pods are sent to the API server only\n" +
			"in dry runs, to see whether they are injected.",
		Example: "  " + name + " doctor\n" +
			"  " + name + " doctor --service " + name + "-system/" + name + " --output json\n\n" +
			"  # without permission to forward ports of pods, through a forwarded port\n" +
			"  " + name + " doctor --dial 127.0.0.1:9443",
		Args:         cli.NoArguments("use flags"),
		PreRunE:      func(*cobra.Command, []string) error { return o.validate() },
		RunE:         cli.Interruptible(o.run),
		SilenceUsage: true,
	}
	cmd.SetUsageFunc(cli.PrintUsage)
	o.AddFlags(cmd)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Server", func() {
		flags.StringVar(&o.AuthorityFlags.Registration.Name, "configuration-name", o.AuthorityFlags.Registration.Name, "`name` of the webhook configurations")
		flags.StringVar(&o.ServiceAccount, "service-account", known.ServiceAccount, "`name` of the server's service account in the namespace of the Service, or namespace/name")
		flags.IntVar(&o.MetricsPort, "metrics-port", doctor.DefaultMetricsPort, "`port` of the replicas for metrics and probes")
		flags.StringArrayVar(&o.Replicas, "replica", nil, "`url` where the metrics of a replica can be reached from here, such as http://127.0.0.1:8080, instead of the replicas of the Service; may be repeated")
		flags.StringVar(&o.Dial, "dial", "", "`host:port` where a replica can be reached from here, to check its certificate; defaults to the Service or, if that does not answer, to one of its pods through the API server")
		flags.StringArrayVar(&o.Static, "static-manifests-dir", nil, "`directory` of static admission manifests on this host; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		flags.DurationVar(&o.Window, "window", 10*time.Second, "`duration` to watch the counters of the API server, here for more failed calls if it has counted any; 0 watches while the other checks run")
	})
	cli.AddOutputFlag(cmd, &o.output, cli.TextOrJSON)
	return cmd
}

// validate reports every problem. The Service is optional: the configurations name it.
func (o *doctorOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, cli.TextOrJSON), o.ValidateGiven()}
	if problems := validation.IsDNS1123Subdomain(o.AuthorityFlags.Registration.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--configuration-name %q: %s", o.AuthorityFlags.Registration.Name, strings.Join(problems, "; ")))
	}
	if o.MetricsPort < 1 || o.MetricsPort > 65535 {
		errs = append(errs, fmt.Errorf("--metrics-port %d is outside 1 to 65535", o.MetricsPort))
	}
	for _, replica := range o.Replicas {
		if u, err := url.Parse(replica); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("--replica %q: write a URL such as http://127.0.0.1:8080", replica))
		}
	}
	if o.Window < 0 || o.Window > time.Hour {
		errs = append(errs, fmt.Errorf("--window %s is outside 0 to 1h", o.Window))
	}
	if o.Dial != "" {
		if _, _, err := net.SplitHostPort(o.Dial); err != nil {
			errs = append(errs, fmt.Errorf("--dial %q: write HOST:PORT", o.Dial))
		}
	}
	return errors.Join(errs...)
}

func (o *doctorOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	config, err := o.ClientConfig()
	if err != nil {
		return err
	}
	o.Options.Registration, o.Options.Certificate = o.AuthorityFlags.Registration, o.AuthorityFlags.Certificate
	report, err := doctor.Run(ctx, config, o.Options)
	if err != nil {
		return err
	}
	if o.output != "text" {
		err = cli.PrintAs(cmd.OutOrStdout(), o.output, report)
	} else {
		err = report.Print(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case !report.Sound():
		return cli.ExitFound
	case !report.Certain():
		return cli.ExitStatus(1)
	}
	return nil
}
