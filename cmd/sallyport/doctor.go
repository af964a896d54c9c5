// SPDX-License-Identifier: Apache-2.0

package main

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

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/doctor"
)

type doctorOptions struct {
	authorityFlags
	doctor.Options
	output string
}

func newDoctorCommand() *cobra.Command {
	o := doctorOptions{authorityFlags: newAuthorityFlags()}
	cmd := &cobra.Command{
		Use:   "doctor [--service NAMESPACE/NAME]",
		Short: "Find out why webhooks do not work: each line says ok, or what to do",
		Long: "Doctor looks at an installation from outside, and changes nothing: the API server and its clock, the\n" +
			"webhook configurations, the Service and the replicas behind it, the certificate and every caBundle, the\n" +
			"rights of the server, calls that failed, and static admission manifests. It finds the server in the\n" +
			"webhook configurations. What it may not look at, it says.\n\n" +
			"The exit status is 0 if nothing is to do, 2 if something is, and 1 if the API server cannot be asked.",
		Example: "  sallyport doctor\n" +
			"  sallyport doctor --service sallyport-system/sallyport --output json\n\n" +
			"  # without the right to forward ports of pods, with one that somebody else forwards\n" +
			"  sallyport doctor --dial 127.0.0.1:9443",
		Args:    noArguments("everything is said by flags"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    interruptible(o.run),
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	addFlagGroup(cmd, "Server", func() {
		flags.StringVar(&o.registration.Name, "configuration-name", o.registration.Name, "`name` of the webhook configurations")
		flags.StringVar(&o.ServiceAccount, "service-account", "sallyport", "`name` of the server's service account, in the namespace of the Service, or namespace/name")
		flags.IntVar(&o.MetricsPort, "metrics-port", 8080, "`port` of the replicas for metrics and probes")
		flags.StringArrayVar(&o.Replicas, "replica", nil, "`url` of the metrics of a replica that is reached from here, such as http://127.0.0.1:8080, instead of those behind the Service; may be repeated")
		flags.StringVar(&o.Dial, "dial", "", "`host:port` where a replica is reached from here, to look at its certificate; empty for the Service, and where that does not answer for a pod of it, through the API server")
		flags.StringArrayVar(&o.Static, "static-manifests-dir", nil, "`directory` of static admission manifests on this host; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		flags.DurationVar(&o.Window, "window", 10*time.Second, "if the API server has counted calls that failed: how `long` to watch whether more do; 0 for as long as the other checks take")
	})
	addOutputFlag(cmd, &o.output, textOrJSON)
	return cmd
}

// validate reports every problem. The Service may be left out: the configurations name it.
func (o *doctorOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, textOrJSON), o.validateGiven()}
	if problems := validation.IsDNS1123Subdomain(o.registration.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--configuration-name %q: %s", o.registration.Name, strings.Join(problems, "; ")))
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
	config, err := o.clientConfig()
	if err != nil {
		return err
	}
	o.Registration, o.Certificate = o.registration, o.certificates
	report, err := doctor.Run(ctx, config, o.Options)
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = cli.PrintJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.Print(cmd.OutOrStdout())
	}
	if err == nil && !report.Sound() {
		err = exitStatus(exitFound)
	}
	return err
}
