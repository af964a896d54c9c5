// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
)

func authorityFlags() clusterflags.AuthorityFlags {
	defaults := serve.Default()
	return clusterflags.AuthorityFlags{Flags: clusterFlags(), AuthoritySettings: clusterflags.AuthoritySettings{Certificate: defaults.Certificate, Registration: defaults.AppRegistration()}}
}

func newCertificatesCommand() *cobra.Command {
	cmd := group("certificates", "Inspect and rotate the certificate authority in a cluster",
		"Inspect and rotate the authority that signs the serving certificates of all replicas. It is stored in a\n"+
			"Secret (serve --certificate-source Authority).")
	cmd.AddCommand(newCertificatesStatusCommand(), newCertificatesRotateCommand())
	return cmd
}

func newCertificatesStatusCommand() *cobra.Command {
	f, output := authorityFlags(), ""
	cmd := &cobra.Command{
		Use:   "status --service NAMESPACE/NAME | --authority-secret NAMESPACE/NAME",
		Short: "Print the signing authority, who trusts it, and the progress of a rotation",
		Long:  "Read the Secret of the authority, its lease and the webhook configurations. No keys are printed.",
		Example: "  sallyport certificates status --service sallyport-system/sallyport\n\n" +
			"  sallyport certificates status --authority-secret sallyport-system/sallyport-authority --output json",
		Args: cli.NoArguments("use flags"),
		PreRunE: func(*cobra.Command, []string) error {
			return errors.Join(f.Validate(), cli.Choice("output", output, cli.TextOrJSON))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := f.Authority()
			if err != nil {
				return err
			}
			status, err := of.Status(cmd.Context(), f.Registration.Name)
			if err != nil {
				return err
			}
			if output != "text" {
				return cli.PrintAs(cmd.OutOrStdout(), output, status)
			}
			return status.PrintTable(cmd.OutOrStdout())
		},
	}
	f.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVar(&f.Registration.Name, "configuration-name", f.Registration.Name, "`name` of the webhook configurations whose CA bundles to inspect")
	})
	cli.AddOutputFlag(cmd, &output, cli.TextOrJSON)
	return cmd
}

func newCertificatesRotateCommand() *cobra.Command {
	f := authorityFlags()
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "rotate --service NAMESPACE/NAME | --authority-secret NAMESPACE/NAME",
		Short: "Replace the authority without interrupting service",
		Long: "Ask the leader to replace the authority. It publishes the new CA certificate beside the current one,\n" +
			"signs with the new one once all clients trust it, and then removes the old one. This takes a little more\n" +
			"than twice certificate.caPropagation of the server.",
		Example: "  sallyport certificates rotate --service sallyport-system/sallyport --wait",
		Args:    cli.NoArguments("use flags"),
		PreRunE: func(*cobra.Command, []string) error {
			err := f.Validate()
			if timeout <= 0 {
				err = errors.Join(err, fmt.Errorf("--timeout %s must be positive", timeout))
			}
			return err
		},
		RunE: cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			of, err := f.Authority()
			if err != nil {
				return err
			}
			if !wait {
				timeout = 0
			}
			return of.Rotate(ctx, cmd.OutOrStdout(), timeout)
		}),
	}
	f.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Waiting", func() {
		cmd.Flags().BoolVar(&wait, "wait", false, "wait until the old authority is removed, and print progress")
		cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "with --wait: maximum `duration` to wait; the rotation itself continues")
	})
	return cmd
}
