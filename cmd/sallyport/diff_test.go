// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/test/golden"
)

// TestDiffs runs every archive in testdata/diff: pod.yaml and poddefaults.yaml are the input,
// want.txt is the output, and want.color.txt the output with colors.
func TestDiffs(t *testing.T) {
	paths, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	for _, path := range paths {
		t.Run(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".txtar"), "-", " "), func(t *testing.T) {
			archive := golden.Open(t, path)
			args := []string{"review", "-f", file(t, "pod.yaml", string(archive.File("pod.yaml"))), "--with", file(t, "poddefaults.yaml", string(archive.File("poddefaults.yaml")))}
			if accounts := archive.File("accounts.yaml"); len(accounts) > 0 {
				args = append(args, "--with", file(t, "accounts.yaml", string(accounts)))
			}
			plain := sallyport(t, args...).wantOK(t)
			archive.Equal(t, "want.txt", plain)

			colored := sallyport(t, append(args, "--color", "always")...).wantOK(t)
			archive.Equal(t, "want.color.txt", colored)
			if without := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colored, ""); without != plain {
				t.Errorf("without its colours it is\n%s", without)
			}
			if never := sallyport(t, append(args, "--color", "never")...).wantOK(t); never != plain {
				t.Errorf("--color never prints\n%s", never)
			}
		})
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if cli.UseColor("auto", out) {
		t.Error("a file is coloured")
	}
	if !cli.UseColor("always", out) || cli.UseColor("never", os.Stdout) {
		t.Error("the choice does not count")
	}
}
