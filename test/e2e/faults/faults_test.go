// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestMain lets this binary run itself in the enclosure, as the command does.
func TestMain(m *testing.M) {
	if lab.Enclosed() != "" {
		os.Exit(mainInside(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// TestShort is the short run, whole.
func TestShort(t *testing.T) {
	var table strings.Builder
	if status := mainOutside([]string{"-short", "-sallyport", lab.Command(t, "cmd/sallyport")}, &table, os.Stderr); status != 0 {
		t.Errorf("exit status %d", status)
	}
	t.Logf("\n%s", table.String())
}
