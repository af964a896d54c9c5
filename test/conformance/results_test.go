// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/xml"
	"strings"
	"testing"
)

func resultsOf(runs ...[]outcome) *results {
	r := &results{}
	for _, outcomes := range runs {
		run := r.begin()
		for _, o := range outcomes {
			run.add(o)
		}
	}
	return r
}

func named(name, state string) outcome {
	return outcome{Name: "[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] " + name + " [Conformance]", State: state, Seconds: 1.6}
}

func TestResultsHoldIfEveryCaseHasPassedInEveryRun(t *testing.T) {
	a, b := named("should a", passed), named("should b", passed)
	for _, tc := range []struct {
		name string
		runs [][]outcome
		want bool
	}{
		{"all passed", [][]outcome{{a, b}, {b, a}}, true},
		{"one failed in one run", [][]outcome{{a, b}, {a, named("should b", "failed")}}, false},
		{"one was skipped", [][]outcome{{a, named("should b", "skipped")}}, false},
		{"one was interrupted", [][]outcome{{a, named("should b", "interrupted")}}, false},
		{"one is missing in a run", [][]outcome{{a, b}, {a}}, false},
		{"a run has none", [][]outcome{{a, b}, {}}, false},
		{"there is no run", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := resultsOf(tc.runs...).hold(); got != tc.want {
				t.Errorf("hold is %t", got)
			}
		})
	}
}

func TestTheTableHasALineForEachCaseAndACountForEachRun(t *testing.T) {
	got := resultsOf(
		[]outcome{named("should b", passed), named("should a", "failed"), named("should c", "skipped")},
		[]outcome{named("should a", passed), named("should b", "timedout")},
	).table()
	want := `| case                      | run 1          | run 2          |
|---------------------------|----------------|----------------|
| AdmissionWebhook should a | FAIL 2 s       | pass 2 s       |
| AdmissionWebhook should b | pass 2 s       | TIMEDOUT 2 s   |
| AdmissionWebhook should c | skip 2 s       | not run        |

run 1: 1 pass, 1 fail, 1 skip of 3
run 2: 1 pass, 2 fail, 0 skip of 3
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJUnitSaysWhatFailedAndWhy(t *testing.T) {
	failed := named("should a", "failed")
	failed.Message = "expected <nil>\nto be an error"
	skipped := named("should c", "skipped")
	skipped.Message = "not here"
	text, err := junit(2, resultsOf([]outcome{failed, named("should b", passed), skipped}).runs[0])
	if err != nil {
		t.Fatal(err)
	}
	var got testSuite
	if err := xml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 3 || got.Failures != 1 || got.Skipped != 1 || got.Seconds != "4.8" || len(got.Cases) != 3 {
		t.Errorf("got %s", text)
	}
	if f := got.Cases[0].Failure; f == nil || f.Message != "failed: expected <nil>" || f.Text != failed.Message {
		t.Errorf("got %s", text)
	}
	if got.Cases[1].Failure != nil || got.Cases[1].Skipped != nil || got.Cases[2].Skipped == nil || !strings.HasPrefix(got.Cases[0].Name, "[sig-api-machinery]") {
		t.Errorf("got %s", text)
	}
}
