// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sallyport",
		Short: "Kubernetes admission webhooks: exact, lossless, safe when they fail",
		Long: "Sallyport hosts admission webhooks for Kubernetes (serve), says what they would do to an\n" +
			"object without any cluster (review), prints what to install (manifests), replaces its\n" +
			"certificate authority without an interruption (certificates), and removes what it registered\n" +
			"(uninstall).",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.Flags().Bool("version", false, "print the version of sallyport") // cobra's own would take -v
	cmd.SetUsageFunc(printUsage)
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	cmd.AddCommand(newServeCommand(), newReviewCommand(), newManifestsCommand(), newCertificatesCommand(), newUninstallCommand(), newVersionCommand())
	return cmd
}

// builtinWebhooks are the ready-made webhooks, the same in serve and in review.
func builtinWebhooks(podDefaults poddefault.Source, settings poddefault.Settings) ([]admission.Webhook, error) {
	podDefault, err := poddefault.New(podDefaults, settings)
	if err != nil {
		return nil, err
	}
	return []admission.Webhook{podDefault}, nil
}
