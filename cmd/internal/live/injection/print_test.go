// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/placement"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/golden"
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

func TestDriftIsATableInTheWidthOfTheTerminal(t *testing.T) {
	d := &Drift{
		PodDefaults: []driftOf{
			{Name: "PodDefault team-a/proxy", Exists: true, Revision: "proxy-5f3c2a1b", Pods: map[drift.State]int{drift.Current: 7, drift.Outdated: 2}},
			{Name: "ClusterPodDefault zone", Pods: map[drift.State]int{drift.Surplus: 1, drift.Missed: 1}},
		},
		Workloads: []DriftedWorkload{
			{Namespace: "team-a", Kind: "Deployment", Name: "web", Pods: 3, Drifted: 2, PodDefaults: map[string]map[drift.State]int{"PodDefault team-a/proxy": {drift.Outdated: 2}}},
			{Namespace: "team-a", Kind: "Pod", Name: "alone", Pods: 1, Drifted: 1, Missed: []string{"alone"}, PodDefaults: map[string]map[drift.State]int{"ClusterPodDefault zone": {drift.Missed: 1}}},
		},
		Exemptions: []DriftExemption{{Namespace: "team-b", Pods: 2, Exemption: &exempt.Exemption{
			Name: "mirror", Workloads: []string{"Deployment/mirror"}, Objects: []string{"proxy"}, Until: time.Unix(1800000000, 0).UTC(), Reason: "the proxy breaks its certificates",
		}}},
	}
	golden.Equal(t, "testdata/driftterminal.txt", onTerminal(t, d.PrintText))
	var out strings.Builder
	if err := d.PrintText(&out); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/drift.txt", out.String())
}
