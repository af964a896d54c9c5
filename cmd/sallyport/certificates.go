// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/authority"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/server"
)

// authorityFlags choose an authority in a cluster.
type authorityFlags struct {
	clusterFlags
	certificates frontdoor.CertificateSettings
	registration frontdoor.RegistrationSettings
}

func newAuthorityFlags() authorityFlags {
	defaults := server.Default()
	return authorityFlags{certificates: defaults.AppCertificate(), registration: defaults.AppRegistration()}
}

func (f *authorityFlags) addFlags(cmd *cobra.Command) {
	f.clusterFlags.addFlags(cmd)
	flags := cmd.Flags()
	addFlagGroup(cmd, "Authority", func() {
		flags.StringVar(&f.registration.Service, "service", "", "the Service of the server, `namespace/name[:port]`; the authority is the Secret "+f.certificates.DefaultSecret+" in its namespace")
		flags.StringVar(&f.certificates.Secret, "authority-secret", "", "the Secret of the authority, `namespace/name`, if the server runs with this flag")
	})
}

// named reports whether the flags identify an authority.
func (f *authorityFlags) named() bool {
	return f.certificates.Secret != "" || f.registration.Service != ""
}

// validate reports every problem of the flags; they must identify an authority.
func (f *authorityFlags) validate() error {
	if !f.named() {
		return errors.New("--service or --authority-secret is required: use the value that the server runs with")
	}
	return f.validateGiven()
}

func (f *authorityFlags) validateGiven() error {
	errs := []error{f.certificates.ValidateSource()}
	if f.registration.Service != "" {
		errs = append(errs, f.registration.ValidateEndpoint())
	}
	return hosting.ByFlags(errors.Join(errs...))
}

// authority opens the authority that the validated flags identify.
func (f *authorityFlags) authority() (authority.Authority, error) {
	namespace, name, _ := f.certificates.AuthoritySecret(f.registration.Config().Endpoint)
	c, err := f.open()
	return authority.Authority{Cluster: c, Namespace: namespace, Name: name}, err
}

func newCertificatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "Inspect and rotate the certificate authority in a cluster",
		Long: "Inspect and rotate the authority that signs the serving certificates of all replicas. It is stored in a\n" +
			"Secret (serve --certificate-source authority).",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q: choose status or rotate", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertificatesStatusCommand(), newCertificatesRotateCommand())
	return cmd
}

func newCertificatesStatusCommand() *cobra.Command {
	f, output, outputs := newAuthorityFlags(), "", []string{"table", "json"}
	cmd := &cobra.Command{
		Use:   "status --service NAMESPACE/NAME | --authority-secret NAMESPACE/NAME",
		Short: "Print the signing authority, who trusts it, and the progress of a rotation",
		Long:  "Read the Secret of the authority, its lease and the webhook configurations. No keys are printed.",
		Example: "  sallyport certificates status --service sallyport-system/sallyport\n\n" +
			"  sallyport certificates status --authority-secret sallyport-system/sallyport-authority --output json",
		Args: noArguments("use flags"),
		PreRunE: func(*cobra.Command, []string) error {
			return errors.Join(f.validate(), cli.Choice("output", output, outputs))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := f.authority()
			if err != nil {
				return err
			}
			status, err := of.Status(cmd.Context(), f.registration.Name)
			if err != nil {
				return err
			}
			if output == "json" {
				return cli.PrintJSON(cmd.OutOrStdout(), status)
			}
			return status.PrintTable(cmd.OutOrStdout())
		},
	}
	f.addFlags(cmd)
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVar(&f.registration.Name, "configuration-name", f.registration.Name, "`name` of the webhook configurations whose CA bundles to inspect")
	})
	addOutputFlag(cmd, &output, outputs)
	return cmd
}

func newCertificatesRotateCommand() *cobra.Command {
	f := newAuthorityFlags()
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "rotate --service NAMESPACE/NAME | --authority-secret NAMESPACE/NAME",
		Short: "Replace the authority without interrupting service",
		Long: "Ask the leader to replace the authority. It publishes the new CA certificate beside the current one,\n" +
			"signs with the new one once all clients trust it, and then removes the old one. This takes a little more\n" +
			"than twice certificate.caPropagation of the server.",
		Example: "  sallyport certificates rotate --service sallyport-system/sallyport --wait",
		Args:    noArguments("use flags"),
		PreRunE: func(*cobra.Command, []string) error {
			err := f.validate()
			if timeout <= 0 {
				err = errors.Join(err, fmt.Errorf("--timeout %s must be positive", timeout))
			}
			return err
		},
		RunE: interruptible(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			of, err := f.authority()
			if err != nil {
				return err
			}
			if !wait {
				timeout = 0
			}
			return of.Rotate(ctx, cmd.OutOrStdout(), timeout)
		}),
	}
	f.addFlags(cmd)
	addFlagGroup(cmd, "Waiting", func() {
		cmd.Flags().BoolVar(&wait, "wait", false, "wait until the old authority is removed, and print progress")
		cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "with --wait: maximum `time` to wait; the rotation itself continues")
	})
	return cmd
}
