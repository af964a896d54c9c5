// SPDX-License-Identifier: Apache-2.0

package callmetrics

import (
	"strings"
	"testing"
)

const hostile = "x\nall is well\r\x1b[2K\u0085all is well\u2028\u202ea"

func TestNamesPrintNoLinesOfTheirOwn(t *testing.T) {
	part := &Usage{Name: hostile, Kind: hostile, Operation: hostile}
	var out strings.Builder
	if err := Print(&out, []*Usage{{Name: hostile, Kind: hostile, Operations: []*Usage{part}}, {Name: hostile, Kind: hostile, Operations: []*Usage{part, part}}}, 0); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
			t.Errorf("the line %q", line)
		}
	}
}
