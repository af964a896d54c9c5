// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

var start = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

// compiled returns a PodDefault with a generation, and a conflict unless message is empty.
func compiled(name string, generation int64, message string) *plan.Plan {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Generation: generation, ResourceVersion: "1"}}
	pd.Spec.Env = []corev1.EnvVar{{Name: "A", Value: name}}
	if message != "" {
		pd.Status.Conditions = []metav1.Condition{{
			Type: kubeflowv1alpha1.ConditionConflicting, Status: metav1.ConditionTrue, Message: message, LastTransitionTime: metav1.NewTime(start),
		}}
	}
	return plan.Compile(pd)
}

// refusal returns a result about a workload because of the PodDefault "one".
func refusal(workload string, generation int64, text string, at time.Time) openreports.ReportResult {
	return findingResult("team-a", meta.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: workload},
		&merge.Finding{Object: compiled("one", generation, ""), Verdict: merge.Refused, Text: text}, at)
}

// known is the state of a leader that knows the PodDefault "one" in a generation.
func known(generation int64, conflicts ...openreports.ReportResult) *state {
	return &state{conflicts: conflicts, generation: func(decision string) (int64, bool) { return generation, decision == "one" }}
}

// lines describes results.
func lines(results []openreports.ReportResult) (out []string) {
	for i := range results {
		r := &results[i]
		out = append(out, fmt.Sprintf("%s %s %s %s: %s", r.Policy, r.Rule, r.Result, keyOf(r).name, r.Description))
	}
	return out
}

func wantLines(t *testing.T, what string, got []openreports.ReportResult, want ...string) {
	t.Helper()
	if got := lines(got); !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

func TestFindingsAgeAndGoWithTheirObjects(t *testing.T) {
	conflict := conflictResult(compiled("one", 1, "both set env A"), &metav1.Condition{Message: "both set env A", LastTransitionTime: metav1.NewTime(start)})
	have := compose("team-a", nil, found{results: []openreports.ReportResult{
		refusal("web", 1, "env A", start), refusal("db", 1, "env B", start.Add(time.Hour)),
	}}, known(1, conflict), start.Add(time.Hour))
	const web, db, conflicts = "one refusal fail web: env A", "one refusal fail db: env B", "one conflict warn one: both set env A"
	wantLines(t, "new findings, newest first", have, db, conflicts, web)

	wantLines(t, "another replica than the leader", compose("team-a", have, found{}, nil, start.Add(100*retention)), db, conflicts, web)
	wantLines(t, "the first is old", compose("team-a", have, found{}, known(1, conflict), start.Add(retention)), db, conflicts)
	wantLines(t, "all are old, and the conflict is solved", compose("team-a", have, found{}, known(1), start.Add(2*retention)))
	wantLines(t, "the object has changed", compose("team-a", have, found{}, known(2, conflict), start.Add(time.Hour)), conflicts)
	wantLines(t, "the leader has not seen a change yet", compose("team-a", have, found{results: []openreports.ReportResult{refusal("job", 2, "env C", start.Add(time.Hour))}},
		known(1), start.Add(time.Hour)), db, "one refusal fail job: env C", web)
	wantLines(t, "the object is gone", compose("team-a", have, found{}, &state{generation: func(string) (int64, bool) { return 0, false }}, start))
	wantLines(t, "a clock that is a day ahead", compose("team-a", have, found{}, known(1), start.Add(-retention)))
	later := start.Add(time.Hour)
	if got, want := expiry(have, later), start.Add(retention); !got.Equal(want) {
		t.Errorf("the first finding expires at %s, want %s", got, want)
	}
	if got, want := expiry([]openreports.ReportResult{conflict}, later), later.Add(retention); !got.Equal(want) {
		t.Errorf("with a conflict alone, the next finding may expire at %s, want %s", got, want)
	}
}

func TestWhatIsThereIsNotWrittenAgain(t *testing.T) {
	at := func(after time.Duration, text string) found {
		return found{results: []openreports.ReportResult{refusal("web", 1, text, start.Add(after))}}
	}
	have := compose("team-a", nil, at(0, "env A"), nil, start)
	for what, c := range map[string]struct {
		add     found
		changes bool
	}{
		"nothing":                             {found{}, false},
		"the same from another replica":       {at(time.Minute, "env A"), false},
		"the same, of a slower clock":         {at(-time.Minute, "env A"), false},
		"the same, long after":                {at(refresh, "env A"), true},
		"another reason":                      {at(time.Minute, "env B"), true},
		"another reason, from before that":    {at(-time.Minute, "env B"), false},
		"findings for which there is no room": {found{leftOut: 1}, true},
	} {
		for _, leader := range []*state{nil, known(1)} {
			next := compose("team-a", have, c.add, leader, start.Add(2*time.Minute))
			if changes := !reflect.DeepEqual(next, have); changes != c.changes {
				t.Errorf("%s: %q", what, lines(next))
			}
			if again := compose("team-a", next, c.add, leader, start.Add(3*time.Minute)); c.add.leftOut == 0 && !reflect.DeepEqual(again, next) {
				t.Errorf("%s, a second time: %q", what, lines(again))
			}
		}
	}
}

func TestReportsAreBounded(t *testing.T) {
	var add found
	for i := range 5 * maxResults {
		add.results = append(add.results, refusal(fmt.Sprint("web-", i), 1, strings.Repeat("é", control.MaxMessage), start.Add(time.Duration(i)*time.Second)))
	}
	var conflicts []openreports.ReportResult
	for i := range maxConflicts + 5 {
		conflicts = append(conflicts, conflictResult(compiled(fmt.Sprint("pd-", i), 1, "x"), &metav1.Condition{Message: strings.Repeat("é", control.MaxMessage)}))
	}
	now := start.Add(time.Hour)
	report := &openreports.Report{}
	fill(report, "team-a", compose("team-a", nil, add, known(1), now))
	if n := len(report.Results); n != maxResults {
		t.Fatalf("%d results", n)
	}
	if first := keyOf(&report.Results[0]).name; first != fmt.Sprint("web-", 5*maxResults-1) {
		t.Errorf("the first is %s", first)
	}
	last := report.Results[maxResults-1]
	if last.Rule != limitRule || last.Description != "801 results are left out: a report has the newest 200" {
		t.Errorf("the last is %+v", last)
	}
	if report.Summary != (openreports.ReportSummary{Fail: maxResults - 1, Skip: 1}) {
		t.Errorf("summary: %+v", report.Summary)
	}

	next := compose("team-a", report.Results, found{leftOut: 3}, known(1, conflicts...), now)
	fill(report, "team-a", next)
	if n := len(report.Results); n != maxResults || report.Summary.Warn != maxConflicts || report.Summary.Fail != maxResults-maxConflicts-1 {
		t.Errorf("with conflicts: %d results, %+v", n, report.Summary)
	}
	// 801, 3 without room, 100 that give way, 5 conflicts.
	if last := next[len(next)-1]; last.Description != "909 results are left out: a report has the newest 200" {
		t.Errorf("with conflicts, the last is %+v", last)
	}
	if again := compose("team-a", next, found{}, nil, now.Add(time.Minute)); !reflect.DeepEqual(again, next) {
		t.Error("another replica changes a full report")
	}
	if text, err := json.Marshal(report); err != nil || len(text) > 512<<10 {
		t.Errorf("a full report has %d bytes (%v)", len(text), err)
	}
	if old := compose("team-a", next, found{}, known(1), now.Add(retention)); len(old) != 0 {
		t.Errorf("a day later: %q", lines(old))
	}
}

// FuzzCompose composes reports that anyone may have written.
func FuzzCompose(f *testing.F) {
	seed := &openreports.Report{}
	fill(seed, "team-a", compose("team-a", nil, found{results: []openreports.ReportResult{refusal("web", 1, "env A", start)}, leftOut: 7}, nil, start))
	text, err := json.Marshal(seed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, true)
	var twins []string
	for i := range 20 {
		twins = append(twins, fmt.Sprintf(`{"policy":"one","rule":"conflict","message":"%d"}`, i))
	}
	f.Add([]byte(`{"results":[`+strings.Join(twins, ",")+`]}`), false)
	f.Add([]byte(`{"results":[{"policy":"sallyport","rule":"limit","properties":{"leftOut":"-9999999999999999999"}},{"rule":"conflict"},{"properties":{"podDefaults":"@,one@x"}}]}`), false)
	f.Fuzz(func(t *testing.T, data []byte, leads bool) {
		var report openreports.Report
		if json.Unmarshal(data, &report) != nil {
			return
		}
		var leader *state
		if leads {
			leader = known(1)
		}
		next := compose("team-a", report.Results, found{leftOut: 1}, leader, start)
		if len(next) > maxResults {
			t.Errorf("%d results", len(next))
		}
		if again := compose("team-a", next, found{}, leader, start); !reflect.DeepEqual(again, next) {
			t.Errorf("a second time, %q becomes %q", lines(next), lines(again))
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := New(&rest.Config{}, Options{Metrics: prometheus.NewRegistry()}); err == nil {
		t.Error("a controller without a watcher was made")
	}
}
