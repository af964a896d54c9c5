// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDiffs runs every folder of testdata/diff: a pod and poddefaults.yaml go in,
// want.txt comes out, and want.color.txt with colours.
func TestDiffs(t *testing.T) {
	pods, err := filepath.Glob("testdata/diff/*/pod.yaml")
	if err != nil || len(pods) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	for _, pod := range pods {
		folder := filepath.Dir(pod)
		t.Run(strings.ReplaceAll(filepath.Base(folder), "-", " "), func(t *testing.T) {
			args := []string{"review", "-f", pod, "--with", filepath.Join(folder, "poddefaults.yaml")}
			plain := sallyport(t, args...).wantOK(t)
			equal(t, filepath.Join("diff", filepath.Base(folder), "want.txt"), plain)

			colored := sallyport(t, append(args, "--color", "always")...).wantOK(t)
			equal(t, filepath.Join("diff", filepath.Base(folder), "want.color.txt"), colored)
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
	if useColor("auto", out) {
		t.Error("a file is coloured")
	}
	if !useColor("always", out) || useColor("never", os.Stdout) {
		t.Error("the choice does not count")
	}
}
