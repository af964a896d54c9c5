// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var manFolder = flag.String("man", "", "write the man pages into this folder, for a release")

// Man pages are made by a test, so that the program does not contain what makes them.
func TestEveryCommandHasAManPage(t *testing.T) {
	folder := *manFolder
	if folder == "" {
		folder = t.TempDir()
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	root := newCommand()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "SALLYPORT", Section: "1", Source: "Sallyport", Date: new(time.Unix(0, 0).UTC())}, folder); err != nil {
		t.Fatal(err)
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			visit(child)
		}
		if !cmd.IsAvailableCommand() || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(page), ".SH SYNOPSIS") {
			t.Errorf("%s: %v\n%.200s", name, err, page)
		}
	}
	visit(root)
}
