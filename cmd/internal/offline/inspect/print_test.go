// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
)

const hostile = "x\nall is well\r\x1b[2K\u0085all is well\u2028\u202ea"

func TestFindingsPrintNoLinesOfTheirOwn(t *testing.T) {
	finding := lint.Finding{Rule: "a", Severity: lint.Warning, Object: hostile, Webhook: hostile, Message: hostile, Fix: hostile}
	ignored := finding
	ignored.Ignored = hostile
	r := &Result{Threshold: lint.Info}
	r.Add(&lint.Report{Findings: []lint.Finding{finding}, Ignored: []lint.Finding{ignored}, Skipped: []lint.Skipped{{Rule: "b", Reason: hostile}}}, nil)
	var out strings.Builder
	if err := r.PrintText(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "warning") || !strings.Contains(out.String(), "ignored: ") || !strings.Contains(out.String(), "not checked: ") {
		t.Errorf("not all is printed:\n%s", out.String())
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(strings.TrimSpace(line), "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
			t.Errorf("the line %q", line)
		}
	}
}
