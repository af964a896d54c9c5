// SPDX-License-Identifier: Apache-2.0

package counts

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

func TestDecisionsAreCountedByObject(t *testing.T) {
	counts, err := NewCounts(prometheus.NewRegistry(), func(string, string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	decide := func(decision, names string) {
		counts.Count("team-a", &admission.Response{AuditAnnotations: map[string]string{decision: names}})
	}
	decide("applied", "one@7")
	decide("denied", "two@7,cluster/three@1")
	counts.Count("team-a", admission.Allowed())
	for series, want := range map[series]float64{
		{"team-a", "one", "applied"}: 1, {"team-a", "two", "applied"}: 0, {"team-a", "two", "denied"}: 1, {"team-a", "cluster/three", "denied"}: 1,
	} {
		if got := valueOf(counts, series); got != want {
			t.Errorf("%v is %v, want %v", series, got, want)
		}
	}
}

func newCounts(t *testing.T, known func(namespace, decision string) bool) *Counts {
	t.Helper()
	counts, err := NewCounts(prometheus.NewRegistry(), known)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func everything(string, string) bool { return true }

// valueOf is the value of a series, 0 if there is none.
func valueOf(counts *Counts, of series) float64 {
	for _, one := range counts.all() {
		if one.series == of {
			return one.value
		}
	}
	return 0
}

func TestATenantWhoFillsTheCountsLosesTheNamesOfTheOwnObjects(t *testing.T) {
	counts := newCounts(t, everything)
	counts.add(series{"team-b", "early", "applied"})
	for i := range 2 * maxCounted {
		counts.add(series{"greedy", fmt.Sprint(i), "applied"})
	}
	for range 2 {
		for team := range 20 {
			for i := range 10 {
				counts.add(series{fmt.Sprintf("team-%d", team), fmt.Sprintf("later-%d", i), "applied"})
			}
		}
	}
	counts.add(series{"team-b", "early", "applied"})
	for _, of := range []series{{"team-b", "early", "applied"}, {"team-0", "later-0", "applied"}, {"team-19", "later-9", "applied"}} {
		if got := valueOf(counts, of); got != 2 {
			t.Errorf("%v is %v, want 2", of, got)
		}
	}
	named := maxCounted - 1 - 200
	if got, want := valueOf(counts, series{"greedy", "", "applied"}), float64(2*maxCounted-named); got != want {
		t.Errorf("the greedy one has %v without a name, want %v", got, want)
	}
	if got := valueOf(counts, series{"greedy", "0", "applied"}); got != 1 {
		t.Errorf("the oldest of the greedy one is %v", got)
	}
	if got := valueOf(counts, series{"", "", "applied"}); got != 0 {
		t.Errorf("%v has no namespace", got)
	}
	total := 0.0
	for _, one := range counts.all() {
		total += one.value
	}
	if want := float64(2 + 2*maxCounted + 400); total != want || len(counts.index) > maxCounted {
		t.Errorf("%v counted in %d named series, want %v", total, len(counts.index), want)
	}
}

func TestManyNamespacesHaveBoundedCounts(t *testing.T) {
	counts := newCounts(t, everything)
	for i := range 4 * maxCounted {
		counts.add(series{fmt.Sprintf("team-%d", i), "one", "applied"})
	}
	if n := len(counts.all()); n > maxCounted+maxNameless+1 {
		t.Errorf("%d series", n)
	}
	if got := valueOf(counts, series{"", "", "applied"}); got == 0 {
		t.Error("what has no room is not counted")
	}
}

func TestSeriesOfDeletedObjectsLeave(t *testing.T) {
	gone := map[string]bool{}
	now := time.Now()
	counts := newCounts(t, func(namespace, decision string) bool { return !gone[namespace] && !gone[namespace+"/"+decision] })
	counts.now = func() time.Time { return now }
	add := func() {
		for _, of := range []series{{"team-a", "kept", "applied"}, {"team-a", "deleted", "applied"}, {"team-b", "one", "applied"}, {"team-b", meta.ClusterDecision + "all", "applied"}} {
			counts.add(of)
		}
		counts.withoutName(series{"team-b", "", "applied"}).value++
	}
	add()
	gone["team-a/deleted"], gone["team-b"] = true, true
	if n := len(counts.all()); n != 4 {
		t.Errorf("%d series are served for the last scrapes, want 4", n)
	}
	now = now.Add(goneFor)
	if all := counts.all(); len(all) != 1 || all[0].object != "kept" || len(counts.index) != 1 || len(counts.namespaces) != 1 {
		t.Errorf("left: %+v", all)
	}
	gone = map[string]bool{}
	add()
	if got := valueOf(counts, series{"team-a", "deleted", "applied"}); got != 1 {
		t.Errorf("one that is there again is %v", got)
	}
}
