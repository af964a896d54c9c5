// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// everyCommand calls visit for each of our commands.
func everyCommand(visit func(*cobra.Command)) {
	commands := []*cobra.Command{newCommand()}
	for i := 0; i < len(commands); i++ {
		commands = append(commands, commands[i].Commands()...)
		commands[i].InitDefaultHelpFlag()
		visit(commands[i])
	}
}

// everyFlag calls visit for each flag of our commands.
func everyFlag(visit func(cmd *cobra.Command, flag *pflag.Flag)) {
	everyCommand(func(cmd *cobra.Command) { cmd.Flags().VisitAll(func(flag *pflag.Flag) { visit(cmd, flag) }) })
}

func TestUsageOfEveryFlagIsOfOneStyle(t *testing.T) {
	seen := 0
	everyFlag(func(cmd *cobra.Command, flag *pflag.Flag) {
		seen++
		where := cmd.CommandPath() + " --" + flag.Name + ": " + flag.Usage
		if first := []rune(flag.Usage)[0]; !unicode.IsLower(first) {
			t.Errorf("%s: it does not begin in lower case", where)
		}
		if strings.HasSuffix(flag.Usage, ".") || strings.Contains(flag.Usage, ". ") {
			t.Errorf("%s: it has a full stop; use semicolons", where)
		}
		if strings.Contains(flag.Usage, "`") {
			t.Errorf("%s: it has a back quote, which shells show in completion", where)
		}
		if _, err := cmd.Flags().GetBool(flag.Name); err != nil && len(flag.Annotations[cli.FlagGroup]) == 0 {
			t.Errorf("%s: it stands under no title", where)
		}
	})
	if seen < 40 {
		t.Errorf("only %d flags", seen)
	}
}

func TestHelpNamesEveryFlagOnceAndFitsTheScreen(t *testing.T) {
	for _, command := range []string{"serve", "review", "init", "manifests", "explain", "diff", "preview", "certificates status", "certificates rotate", "uninstall", "lint", "chain", "doctor", "console", "version"} {
		t.Run(command, func(t *testing.T) {
			help := sallyport(t, append(strings.Fields(command), "--help")...).wantOK(t)
			if !strings.Contains(help, "\nUsage:\n  sallyport "+command) {
				t.Errorf("no usage in\n%s", help)
			}
			everyFlag(func(cmd *cobra.Command, flag *pflag.Flag) {
				if cmd.CommandPath() != "sallyport "+command {
					return
				}
				if n := len(regexp.MustCompile(`(?m)^ .*--`+flag.Name+` `).FindAllString(help[strings.LastIndex(help, "Examples:")+1:], -1)); n == 0 {
					t.Errorf("--%s is not there", flag.Name)
				}
			})
			for line := range strings.Lines(help) {
				if len(line) > 121 {
					t.Errorf("a line of %d characters: %s", len(line), line)
				}
			}
			if asHelp := sallyport(t, append([]string{"help"}, strings.Fields(command)...)...).wantOK(t); asHelp != help {
				t.Errorf("help %s prints something else:\n%s", command, asHelp)
			}
		})
	}
}

func TestHelpOfServeHasItsFlagsInGroups(t *testing.T) {
	help := sallyport(t, "serve", "--help").wantOK(t)
	at := 0
	for _, part := range []string{
		"\nConfiguration:\n      --config file ", "\nAPI server:\n      --kubeconfig file ", "\nWebhooks:\n", "\nCertificate:\n      --certificate-source ",
		"\nCallers:\n", "\nAddresses:\n      --bind-address ", "\nLog:\n", "\nFlags:\n  -h, --help ",
	} {
		next := strings.Index(help[at:], part)
		if next < 0 {
			t.Fatalf("%q is not there, or in another order:\n%s", part, help)
		}
		at += next
	}
}

func TestHelpWithoutACommandListsThem(t *testing.T) {
	help := sallyport(t).wantOK(t)
	for _, command := range []string{"serve", "review", "manifests", "version", "completion", "help"} {
		if !regexp.MustCompile(`(?m)^  ` + command + ` +[A-Z]`).MatchString(help) {
			t.Errorf("%s is not listed:\n%s", command, help)
		}
	}
}

// TestHelpFitsAScreen has the groups in their order, in 50 lines of at most 120 characters.
func TestHelpFitsAScreen(t *testing.T) {
	help := sallyport(t, "--help").wantOK(t)
	if lines := strings.Count(help, "\n"); lines > 50 {
		t.Errorf("%d lines:\n%s", lines, help)
	}
	at := 0
	for _, title := range []string{"Before you apply", "In a cluster", "PodDefaults", "Servers", "Authors", "Other commands"} {
		next := strings.Index(help[at:], "\n"+title+":\n  ")
		if next < 0 {
			t.Fatalf("%q is not there, or in another order:\n%s", title, help)
		}
		at += next
	}
	for _, cmd := range newCommand().Commands() {
		if cmd.GroupID == "" || len(cmd.Short) > 100 {
			t.Errorf("%s: group %q, %q", cmd.Name(), cmd.GroupID, cmd.Short)
		}
	}
}

// quoted is an argument with spaces.
var quoted = regexp.MustCompile(`'[^']*'`)

// TestExamplesUseFlagsThatExist parses the examples in the help as command lines. Each command that does something has one.
func TestExamplesUseFlagsThatExist(t *testing.T) {
	everyCommand(func(cmd *cobra.Command) {
		own := 0
		example := strings.ReplaceAll(cmd.Example, "\\\n", " ")
		for line := range strings.Lines(example) {
			for part := range strings.SplitSeq(line, "|") {
				part, _, _ = strings.Cut(part, " > ")
				words := strings.Fields(quoted.ReplaceAllString(part, "quoted"))
				if len(words) < 2 || words[0] != "sallyport" {
					continue
				}
				found, rest, err := newCommand().Find(words[1:])
				if err == nil {
					err = found.ParseFlags(rest)
				}
				if err == nil {
					err = found.ValidateArgs(found.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %v", part, err)
				} else if found.CommandPath() == cmd.CommandPath() {
					own++
				}
			}
		}
		if own == 0 && !cmd.HasSubCommands() {
			t.Errorf("%s has no example of its own:\n%s", cmd.CommandPath(), cmd.Example)
		}
	})
}
