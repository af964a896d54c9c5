// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/commands/contexts"
	"github.com/sallyport-io/sallyport/cmd/internal/live/serverdoctor"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/application"
)

// groups are the commands, as the help shows them.
func groups() []commandGroup {
	return []commandGroup{
		{"Before you apply", []*cobra.Command{newReviewCommand(), newTestCommand(), contexts.Command(newLintCommand), contexts.Command(newChainCommand), newReplayCommand()}},
		{"In a cluster", []*cobra.Command{
			newExplainCommand(), newDiffCommand(), newPreviewCommand(), contexts.Command(newDriftCommand),
			contexts.Command(newDoctorCommand), contexts.Command(newTopCommand), newConsoleCommand(),
		}},
		{"PodDefaults", []*cobra.Command{newRolloutCommand(), newExportCommand()}},
		{"Servers", []*cobra.Command{
			newServeCommand(), newManifestsCommand(), newUninstallCommand(), newConfigCommand(), newCertificatesCommand(),
			newRecordCommand(), newWebhooksCommand(),
		}},
		{"Authors", []*cobra.Command{commands.Init(buildVersion()), application.ConvertByWebhooks("sallyport", clusterFlags())}},
		{"Other commands", []*cobra.Command{newVersionCommand()}},
	}
}

func newDoctorCommand() *cobra.Command {
	return commands.Doctor(authorityFlags(), serverdoctor.Options())
}

type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// suggestions are the words of other programs, and what to use instead: cobra suggests it.
var suggestions = map[string][]string{
	"rollout":      {"history", "rollback", "undo", "promote", "abort", "restart", "status"},
	"drift":        {"missed"},
	"export":       {"policies"},
	"certificates": {"certs", "rotate"},
	"review":       {"apply"},
	"console":      {"dashboard", "ui"},
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sallyport",
		Short: "Kubernetes admission webhooks: exact, lossless, safe when they fail",
		Long: "Sallyport hosts admission webhooks for Kubernetes, and shows what webhooks and policies change and why.\n" +
			"Installed as kubectl-sallyport, it is a kubectl plugin: kubectl sallyport explain pod/web-0.",
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
	all := groups()
	for _, g := range all {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID, c.SuggestFor = g.title, suggestions[c.Name()]
			cmd.AddCommand(c)
		}
	}
	last := all[len(all)-1].title
	cmd.SetHelpCommandGroupID(last)
	cmd.SetCompletionCommandGroupID(last)
	return cmd
}

// group is a command that only has subcommands, and says which there are.
func group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			text := fmt.Sprintf("unknown command %q for %q: choose %s", args[0], cmd.CommandPath(), cli.OneOf(names))
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				text += "\n\nDid you mean this?\n\t" + strings.Join(near, "\n\t")
			}
			return errors.New(text)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}
