// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"io"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/placement"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

const hostile = "x\nall is well\r\x1b[2K\u0085all is well\u2028\u202ea"

// What tenants write into annotations, conditions and messages prints no line of its own.
func TestTextsOfTenantsPrintNoLinesOfTheirOwn(t *testing.T) {
	explained := []explained{{Name: hostile, Detail: hostile, Adds: []string{hostile}}}
	for name, print := range map[string]func(io.Writer) error{
		"explain": (&Explanation{
			Object: hostile, Namespace: hostile, Basis: hostile, Note: hostile, Matching: explained, Carried: explained,
			NotMatching: []notMatching{{hostile, hostile}}, Datasets: &placement.Placement{Problem: hostile}, Denied: hostile, Warnings: []string{hostile},
		}).PrintText,
		"a note": func(out io.Writer) error {
			manifest.Note(out, "warning: %s: %s", hostile, hostile)
			return nil
		},
	} {
		for _, width := range []int{0, 20, 40} {
			var out strings.Builder
			if err := print(&terminal.Screen{Writer: &out, Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
					t.Errorf("%s, %d columns: the line %q", name, width, line)
				}
			}
		}
	}
}

// onTerminal is a text as it is on a terminal of 72 columns: ^ stands for the beginning of a sequence that styles it.
func onTerminal(t *testing.T, print func(io.Writer) error) string {
	t.Helper()
	var out strings.Builder
	if err := print(&terminal.Screen{Writer: &out, Width: 72, Color: true}); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), "\x1b", "^")
}
