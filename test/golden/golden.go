// SPDX-License-Identifier: Apache-2.0

// Package golden compares what comes out of a test with what a file says. With -update the
// file is written instead. It is for tests only: importing it declares that flag.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

var update = flag.Bool("update", false, "write what comes out to the files of testdata")

// Update tells whether files are to be written.
func Update() bool { return *update }

// Equal compares with the file at a path.
func Equal(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; got\n%s", err, got)
	}
	if diff := udiff.Unified("want", "got", string(want), got); diff != "" {
		t.Errorf("%s:\n%s", path, diff)
	}
}
