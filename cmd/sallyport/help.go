// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

const (
	// flagGroup is the annotation of a flag with the title it stands under in the
	// help.
	flagGroup = "sallyport.io/flag-group"
	// flagUsage is the annotation with the usage in which back quotes mark the name of
	// the value. The flag itself has it without: shells show that in completion.
	flagUsage = "sallyport.io/flag-usage"
	// otherFlags is the title of flags that have none.
	otherFlags = "Flags"
)

// addFlagGroup puts the flags that add adds under a title in the command's help.
// Titles and flags stand in the order in which they were added.
func addFlagGroup(cmd *cobra.Command, title string, add func()) {
	flags := cmd.Flags()
	flags.SortFlags = false
	known := map[string]bool{}
	flags.VisitAll(func(flag *pflag.Flag) { known[flag.Name] = true })
	add()
	flags.VisitAll(func(flag *pflag.Flag) {
		if known[flag.Name] {
			return
		}
		_ = flags.SetAnnotation(flag.Name, flagGroup, []string{title}) // the flag is there
		_ = flags.SetAnnotation(flag.Name, flagUsage, []string{flag.Usage})
		flag.Usage = strings.ReplaceAll(flag.Usage, "`", "")
	})
}

// printUsage prints how a command is called, with its flags in groups and the
// lines no longer than the terminal is wide.
func printUsage(cmd *cobra.Command) error {
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
		out.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				_, _ = fmt.Fprintf(&out, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	width := helpWidth(cmd.Root().OutOrStdout())
	for _, group := range flagGroups(cmd) {
		out.WriteString("\n" + group.title + ":\n" + group.flags.FlagUsagesWrapped(width))
	}
	if cmd.HasAvailableSubCommands() {
		out.WriteString("\nSee '" + cmd.CommandPath() + " COMMAND --help' for each of them.\n")
	}
	_, err := io.WriteString(cmd.OutOrStderr(), out.String())
	return err
}

type titledFlags struct {
	title string
	flags *pflag.FlagSet
}

// flagGroups are the flags of a command by their titles, those without one last.
func flagGroups(cmd *cobra.Command) []titledFlags {
	var groups []titledFlags
	other := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		titles := flag.Annotations[flagGroup]
		if len(titles) == 0 {
			other.AddFlag(flag)
			return
		}
		last := len(groups) - 1
		if last < 0 || groups[last].title != titles[0] {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.SortFlags = false
			groups = append(groups, titledFlags{titles[0], set})
			last++
		}
		shown := *flag
		shown.Usage = flag.Annotations[flagUsage][0]
		groups[last].flags.AddFlag(&shown)
	})
	return append(groups, titledFlags{otherFlags, other})
}

// helpWidth is how wide the lines of the help may be.
func helpWidth(out io.Writer) int {
	const usual, widest = 100, 120
	if file, ok := out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return min(width, widest)
		}
	}
	return usual
}

// noArguments refuses arguments, and says what a command wants instead.
func noArguments(instead string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%s takes no argument, but got %q: %s", cmd.CommandPath(), args[0], instead)
	}
}
