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

// authorityFlags say which authority, in which cluster.
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
		flags.StringVar(&f.registration.Service, "service", "", "the Service of the server, `namespace/name[:port]`: its authority is the Secret "+f.certificates.DefaultSecret+" beside it")
		flags.StringVar(&f.certificates.Secret, "authority-secret", "", "the Secret of the authority, `namespace/name`, if the server was given this flag")
	})
}

// named tells whether flags say where the authority is.
func (f *authorityFlags) named() bool {
	return f.certificates.Secret != "" || f.registration.Service != ""
}

// validate reports every problem of the flags; named is what they must be.
func (f *authorityFlags) validate() error {
	if !f.named() {
		return errors.New("--service or --authority-secret is needed: write what the server was given")
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

// authority is where the flags say; they were validated.
func (f *authorityFlags) authority() (authority.Authority, error) {
	namespace, name, _ := f.certificates.AuthoritySecret(f.registration.Config().Endpoint)
	c, err := f.open()
	return authority.Authority{Cluster: c, Namespace: namespace, Name: name}, err
}

func newCertificatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "Look at the certificate authority in a cluster, and replace it",
		Long: "Certificates is about the authority that signs the serving certificates of all replicas. It is kept\n" +
			"in a Secret (serve --certificate-source authority).",
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
		Short: "Print which authority signs, who trusts it, and how far a rotation is",
		Long: "Status reads the Secret of the authority, the lease beside it and the webhook configurations.\n" +
			"It prints no key.",
		Example: "  sallyport certificates status --service sallyport-system/sallyport\n\n" +
			"  sallyport certificates status --authority-secret sallyport-system/sallyport-authority --output json",
		Args: noArguments("everything is said by flags"),
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
		cmd.Flags().StringVar(&f.registration.Name, "configuration-name", f.registration.Name, "`name` of the webhook configurations whose CA bundles are looked at")
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
		Short: "Replace the authority by a new one, without an interruption",
		Long: "Rotate asks the server that leads to replace the authority. It publishes a new one beside the one\n" +
			"that signs, lets the new one sign once everybody trusts it, and then drops the old one. That takes\n" +
			"a little more than twice certificate.caPropagation of the server.",
		Example: "  sallyport certificates rotate --service sallyport-system/sallyport --wait",
		Args:    noArguments("everything is said by flags"),
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
		cmd.Flags().BoolVar(&wait, "wait", false, "wait until the old authority is dropped, and print how far it is")
		cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "with --wait: `time` after which to give up waiting; the rotation itself goes on")
	})
	return cmd
}
