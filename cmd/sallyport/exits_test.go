// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/test/golden"
)

// TestExitStatusesAreThoseOfOneTable has the statuses of the table for commands that exist, in their help.
func TestExitStatusesAreThoseOfOneTable(t *testing.T) {
	known := map[int]bool{}
	for _, e := range cli.ExitStatuses {
		known[e.Status] = true
	}
	missing := cli.ExitCommands()
	everyCommand(func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || cmd.Hidden {
			return
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "sallyport ")
		missing = slices.DeleteFunc(missing, func(other string) bool { return other == name })
		var statuses []int
		help := strings.Join(strings.Fields(sallyport(t, append(strings.Fields(name), "--help")...).wantOK(t)), " ")
		_, section, _ := strings.Cut(help, " Exit status: ")
		for _, e := range cli.ExitsOf(name) {
			statuses = append(statuses, e.Status)
			if text := fmt.Sprintf("%d %s", e.Status, e.Meaning); !strings.Contains(section, text) {
				t.Errorf("%s: no %q in its help:\n%s", name, text, help)
			}
			if !known[e.Status] {
				t.Errorf("%s: the status %d means nothing", name, e.Status)
			}
		}
		if !slices.IsSorted(statuses) || !slices.Contains(statuses, exitOK) || !slices.Contains(statuses, exitError) {
			t.Errorf("%s has the statuses %d", name, statuses)
		}
		if strings.Contains(strings.ToLower(cmd.Long), "exit status") {
			t.Errorf("%s: its description has statuses of its own:\n%s", name, cmd.Long)
		}
	})
	if len(missing) > 0 {
		t.Errorf("there are no commands %q", missing)
	}
}

// exitBlock is a table of a document: of all statuses, of a command, or of each command.
var exitBlock = regexp.MustCompile(`(?s)(<!-- exit status( of [a-z ]+)?, from [^\n]* -->\n).*?(<!-- end -->\n)`)

// TestExitStatusesInDocuments compares the tables of documents with that of the commands. With -update it writes them.
func TestExitStatusesInDocuments(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !exitBlock.Match(raw) {
			if strings.Contains(string(raw), "| exit status |") {
				t.Errorf("%s: its table is not generated", path)
			}
			continue
		}
		golden.Equal(t, path, exitBlock.ReplaceAllStringFunc(string(raw), func(block string) string {
			blocks++
			parts := exitBlock.FindStringSubmatch(block)
			return parts[1] + exitRows(strings.TrimPrefix(parts[2], " of ")) + parts[3]
		}))
	}
	if blocks < 8 {
		t.Errorf("only %d tables", blocks)
	}
}

func exitRows(of string) string {
	var out strings.Builder
	rows := func(list []cli.Exit, before string) {
		for _, e := range list {
			fmt.Fprintf(&out, "| %s%d | %s |\n", before, e.Status, regexp.MustCompile(`--[a-z-]+`).ReplaceAllString(e.Meaning, "`$0`"))
		}
	}
	switch of {
	case "":
		out.WriteString("| exit status | meaning |\n|---|---|\n")
		rows(cli.ExitStatuses, "")
	case "each command":
		out.WriteString("| command | exit status | meaning |\n|---|---|---|\n")
		commands := cli.ExitCommands()
		slices.Sort(commands)
		for _, command := range commands {
			rows(cli.ExitsOf(command), "`"+command+"` | ")
		}
	default:
		out.WriteString("| exit status | meaning |\n|---|---|\n")
		rows(cli.ExitsOf(of), "")
	}
	return out.String()
}
