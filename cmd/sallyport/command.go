// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/install/roundtrip"
)

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sallyport",
		Short: "Kubernetes admission webhooks: exact, lossless, safe when they fail",
		Long: "Sallyport hosts admission webhooks for Kubernetes (serve), shows what they would do to an object without\n" +
			"a cluster (review), prints the manifests to install (manifests), lists the ready-made webhooks\n" +
			"(webhooks), checks the server's configuration (config), rotates its certificate authority\n" +
			"(certificates), and removes its registration (uninstall). It finds problems in any webhook\n" +
			"configurations (lint), lists the webhooks and policies for a request (chain), and diagnoses an\n" +
			"installation (doctor). It checks that objects survive conversion\n" +
			"(convert), and starts a project with webhooks of your own (init). It fetches reviews that servers have\n" +
			"recorded (record), and replays them against another configuration (replay).\n\n" +
			"For the PodDefaults of a cluster it explains which of them apply to a pod (explain), and shows what they\n" +
			"would change (diff), which workloads a new one would affect (preview), and which pods were created\n" +
			"without them or differ from what they would get now (drift); the web console shows the same\n" +
			"(console). Installed as kubectl-sallyport, the program is a kubectl plugin: kubectl sallyport explain\n" +
			"pod/web-0.",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.Flags().Bool("version", false, "print the version of sallyport") // cobra's own flag would take -v
	cmd.SetUsageFunc(cli.PrintUsage)
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	cmd.AddCommand(newServeCommand(), newReviewCommand(), newTestCommand(), newRecordCommand(), newReplayCommand(), newExplainCommand(), newDiffCommand(), newPreviewCommand(), newManifestsCommand(), newWebhooksCommand(), newConfigCommand(), newCertificatesCommand(), newUninstallCommand(), newVersionCommand())
	cmd.AddCommand(newLintCommand(), newChainCommand(), newDoctorCommand(), newTopCommand(), newDriftCommand(), newConsoleCommand(), roundtrip.WebhookCommand("sallyport", clusterFlags()))
	cmd.AddCommand(newHistoryCommand(), newRollbackCommand(), newPromoteCommand(), newAbortCommand(), newInitCommand())
	return cmd
}
