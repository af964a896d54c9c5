// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/cli/terminal"
)

const (
	// FlagGroup is the annotation of a flag with the title of its group in the help.
	FlagGroup = "sallyport.io/flag-group"
	// flagUsage is the annotation with the usage in which back quotes mark the name of the
	// value. The usage of the flag itself has none, because shells show it in completion.
	flagUsage = "sallyport.io/flag-usage"
	// otherFlags is the title of flags without a group.
	otherFlags = "Flags"
)

// AddFlagGroup groups the flags that add adds under a title in the command's help. Titles
// and flags appear in the order in which they were added.
func AddFlagGroup(cmd *cobra.Command, title string, add func()) {
	flags := cmd.Flags()
	flags.SortFlags = false
	known := map[string]bool{}
	flags.VisitAll(func(flag *pflag.Flag) { known[flag.Name] = true })
	add()
	flags.VisitAll(func(flag *pflag.Flag) {
		if known[flag.Name] {
			return
		}
		_ = flags.SetAnnotation(flag.Name, FlagGroup, []string{title}) // the flag exists
		_ = flags.SetAnnotation(flag.Name, flagUsage, []string{flag.Usage})
		flag.Usage = strings.ReplaceAll(flag.Usage, "`", "")
	})
}

// PrintUsage prints the usage of a command with its flags in groups, wrapped to the width
// of the terminal.
func PrintUsage(cmd *cobra.Command) error {
	var out strings.Builder
	out.WriteString("Usage:\n")
	if cmd.Runnable() {
		out.WriteString("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		out.WriteString("  " + cmd.CommandPath() + " COMMAND\n")
	}
	if cmd.HasExample() {
		out.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		printCommands(&out, cmd)
	}
	width := helpWidth(cmd.Root().OutOrStdout())
	for _, group := range flagGroups(cmd) {
		out.WriteString("\n" + group.title + ":\n" + group.flags.FlagUsagesWrapped(width))
	}
	if !cmd.HasAvailableSubCommands() {
		printExits(&out, cmd, width)
	}
	if cmd.HasAvailableSubCommands() {
		out.WriteString("\nRun '" + cmd.CommandPath() + " COMMAND --help' for more about a command.\n")
	}
	_, err := io.WriteString(cmd.OutOrStderr(), out.String())
	return err
}

// printCommands prints the subcommands by group.
func printCommands(out *strings.Builder, cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, group := range groups {
		out.WriteString("\n" + group.Title + "\n")
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				_, _ = fmt.Fprintf(out, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
}

type titledFlags struct {
	title string
	flags *pflag.FlagSet
}

// flagGroups returns the flags of a command by title; flags without a group come last.
func flagGroups(cmd *cobra.Command) []titledFlags {
	var groups []titledFlags
	other := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		titles := flag.Annotations[FlagGroup]
		if len(titles) == 0 {
			other.AddFlag(flag)
			return
		}
		at := slices.IndexFunc(groups, func(g titledFlags) bool { return g.title == titles[0] })
		if at < 0 {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.SortFlags = false
			at, groups = len(groups), append(groups, titledFlags{titles[0], set})
		}
		shown := *flag
		shown.Usage = flag.Annotations[flagUsage][0]
		groups[at].flags.AddFlag(&shown)
	})
	return append(groups, titledFlags{otherFlags, other})
}

// helpWidth is the maximum width of help lines.
func helpWidth(out io.Writer) int {
	const usual, widest = 100, 120
	if width, _ := terminal.Size(out); width > 0 {
		return min(width, widest)
	}
	return usual
}

// Arguments accepts from least to most arguments; what says which: "TYPE/NAME".
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return fmt.Errorf("%s takes %s, but got %s; see '%s --help'", cmd.CommandPath(), what, Count(len(args), "argument", "arguments"), cmd.CommandPath())
	}
}

// NoArguments rejects arguments, and says what to do instead.
func NoArguments(instead string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%s takes no arguments, but got %q: %s", cmd.CommandPath(), args[0], instead)
	}
}
