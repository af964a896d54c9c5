// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// refused records that a workload of a namespace is refused.
func refused(r *Recorder, namespace, workload, text string) {
	r.Record(namespace, meta.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: workload},
		[]merge.Finding{{Object: compiled("one", 1, ""), Verdict: merge.Refused, Text: text}})
}

func TestFindingsWaitUntilTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Recorder{}
		var woken []string
		refused(r, "team-a", "web", "env A")
		r.notify(func(namespace string) { woken = append(woken, namespace) })
		refused(r, "team-a", "db", "env A")
		refused(r, "team-b", "web", "env A")
		if want := []string{"team-a", "team-b"}; !slices.Equal(woken, want) {
			t.Errorf("woken for %q, want %q", woken, want)
		}
		taken := r.take("team-a")
		wantLines(t, "taken", taken.found().results, "one refusal fail db: env A", "one refusal fail web: env A")
		time.Sleep(time.Second)
		refused(r, "team-a", "web", "env B")
		r.give("team-a", taken)
		wantLines(t, "after a failure", r.take("team-a").found().results, "one refusal fail web: env B", "one refusal fail db: env A")
		if r.waiting != 1 {
			t.Errorf("%d findings wait, want that of team-b", r.waiting)
		}

		refused(r, "team-a", "web", "env B")
		if got := r.take("team-a").found(); len(got.results)+got.leftOut > 0 {
			t.Errorf("what was written is to be written again: %q", lines(got.results))
		}
		time.Sleep(refresh)
		refused(r, "team-a", "web", "env B")
		wantLines(t, "an hour later", r.take("team-a").found().results, "one refusal fail web: env B")
	})
}

func TestFindingsInMemoryAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Recorder{}
		for i := range 1000 {
			refused(r, "team-a", fmt.Sprint("web-", i), strings.Repeat("x", 10_000))
			time.Sleep(time.Second)
		}
		got := r.take("team-a")
		first := got.found().results[0]
		if len(got.results) != maxResults || got.leftOut != 1000-maxResults || keyOf(&first).name != "web-999" || len(first.Description) > control.MaxMessage {
			t.Errorf("%d results, %d left out, the first is %s with %d bytes", len(got.results), got.leftOut, keyOf(&first).name, len(first.Description))
		}
		for i := range maxResults {
			refused(r, "team-a", fmt.Sprint("late-", i), "env A")
		}
		r.give("team-a", got)
		if got := r.take("team-a"); len(got.results) != maxResults || got.leftOut != 1000 || r.waiting != 0 {
			t.Errorf("after a failure: %d results, %d left out, %d wait", len(got.results), got.leftOut, r.waiting)
		}

		for namespace := range 100 {
			for i := range maxResults {
				refused(r, fmt.Sprint("team-", namespace), fmt.Sprint("web-", i), "env A")
			}
		}
		if r.waiting > maxRemembered || len(r.told) > maxRemembered {
			t.Errorf("%d findings wait, %d are remembered", r.waiting, len(r.told))
		}
		found, leftOut := 0, 0
		for namespace := range 100 {
			ns := r.take(fmt.Sprint("team-", namespace))
			found, leftOut = found+len(ns.results), leftOut+ns.leftOut
		}
		if found+leftOut != 100*maxResults || r.waiting != 0 {
			t.Errorf("of %d findings, %d are there and %d left out", 100*maxResults, found, leftOut)
		}
	})
}
