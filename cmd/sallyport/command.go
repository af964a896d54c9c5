// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/server"
)

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sallyport",
		Short: "Kubernetes admission webhooks: exact, lossless, safe when they fail",
		Long: "Sallyport hosts admission webhooks for Kubernetes (serve), says what they would do to an\n" +
			"object without any cluster (review), prints what to install (manifests), lists the ready-made\n" +
			"webhooks (webhooks), checks its configuration (config), replaces its certificate authority\n" +
			"without an interruption (certificates), and removes what it registered (uninstall). It looks at\n" +
			"anybody's webhook configurations (lint), says who is asked about an object (chain), and why an\n" +
			"installation does not work (doctor).\n\n" +
			"For the PodDefaults of a cluster it says which of them are for a pod, and why not the others\n" +
			"(explain), what they would change (diff), whose pods a new one would change (preview), and which pods\n" +
			"passed without them (missed). Under the\n" +
			"name kubectl-sallyport the program is a plugin: kubectl sallyport explain pod/web-0.",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.Flags().Bool("version", false, "print the version of sallyport") // cobra's own would take -v
	cmd.SetUsageFunc(printUsage)
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && cmd.Flags().Lookup("config") != nil {
			err = cmp.Or(server.RemovedFlag(unknown.GetSpecifiedName()), err)
		}
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	cmd.AddCommand(newServeCommand(), newReviewCommand(), newTestCommand(), newExplainCommand(), newDiffCommand(), newPreviewCommand(), newManifestsCommand(), newWebhooksCommand(), newConfigCommand(), newCertificatesCommand(), newUninstallCommand(), newVersionCommand())
	cmd.AddCommand(newLintCommand(), newChainCommand(), newDoctorCommand(), newTopCommand(), newMissedCommand())
	return cmd
}
