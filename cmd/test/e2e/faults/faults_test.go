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

// TestShort is the short run, whole: each row on one of two control planes, beside each other,
// since most of a row is waiting.
func TestShort(t *testing.T) {
	command := lab.Command(t, "cmd/sallyport")
	var parts [2][]string
	short := 0
	for _, r := range rows {
		if r.shortRounds > 0 {
			parts[short%len(parts)] = append(parts[short%len(parts)], r.name)
			short++
		}
	}
	for _, part := range parts {
		t.Run(part[0]+" to "+part[len(part)-1], func(t *testing.T) {
			t.Parallel()
			var table strings.Builder
			if status := mainOutside([]string{"-short", "-sallyport", command, "-rows", strings.Join(part, ",")}, &table, os.Stderr); status != 0 {
				t.Errorf("exit status %d", status)
			}
			t.Logf("\n%s", table.String())
		})
	}
}
