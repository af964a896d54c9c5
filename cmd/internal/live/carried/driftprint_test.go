// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/test/golden"
)

// What tenants write into objects prints no line of its own.
func TestTextsOfTenantsPrintNoLinesOfTheirOwn(t *testing.T) {
	const hostile = "x\nall is well\r\x1b[2K\u0085all is well\u2028\u202ea"
	d := &Drift{
		PodDefaults: []driftOf{{Name: hostile, Exists: true, Revision: hostile}},
		Exemptions:  []DriftExemption{{Namespace: "a", Exemption: &exempt.Exemption{Name: hostile, Workloads: []string{hostile}, Reason: hostile, Objects: []string{hostile}}}},
	}
	for _, width := range []int{0, 20, 40} {
		var out strings.Builder
		if err := d.PrintText(&terminal.Screen{Writer: &out, Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
				t.Errorf("%d columns: the line %q", width, line)
			}
		}
	}
}

func TestDriftIsATableInTheWidthOfTheTerminal(t *testing.T) {
	d := &Drift{
		PodDefaults: []driftOf{
			{Name: "PodDefault team-a/proxy", Exists: true, Revision: "5f1c2ab9e0d84c3aa61b70d2f9c4e853", Pods: map[drift.State]int{drift.Current: 7, drift.Outdated: 2}},
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
	var out strings.Builder
	if err := d.PrintText(&terminal.Screen{Writer: &out, Width: 72, Color: true}); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/driftterminal.txt", strings.ReplaceAll(out.String(), "\x1b", "^"))
	out.Reset()
	if err := d.PrintText(&out); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/drift.txt", out.String())
}
