// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"io"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/placement"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
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
		"drift": (&Drift{
			PodDefaults: []driftOf{{Name: hostile, Exists: true, Revision: hostile}},
			Exemptions:  []DriftExemption{{Namespace: "a", Exemption: &exempt.Exemption{Name: hostile, Workloads: []string{hostile}, Reason: hostile, Objects: []string{hostile}}}},
		}).PrintText,
		"a note": func(out io.Writer) error {
			manifest.Note(out, "warning: %s: %s", hostile, hostile)
			return nil
		},
	} {
		var out strings.Builder
		if err := print(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
				t.Errorf("%s: the line %q", name, line)
			}
		}
	}
}
