// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   float64
	}{
		"of none is 0":        {nil, 0},
		"of one is the value": {[]float64{3}, 3},
		"of an odd number is the one in the middle":      {[]float64{9, 1, 5}, 5},
		"of an even number is the mean of the two there": {[]float64{4, 1, 9, 2}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := median(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	tests := map[string]struct {
		durations []time.Duration
		p         float64
		want      time.Duration
	}{
		"of none is 0":                     {nil, 50, 0},
		"50 of one is the value":           {[]time.Duration{7}, 50, 7},
		"50 of a hundred is the fiftieth":  {hundred, 50, 50},
		"99 of a hundred is the last one":  {hundred, 99, 99},
		"100 of a hundred is the greatest": {hundred, 100, 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := percentile(test.durations, test.p); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func someResults() *results {
	return &results{
		Machine: machine{CPUs: 2, APIServer: "v1", ReviewSize: sizes{"notebook": 7535}},
		Reviews: []measurement{
			{Case: notebookOneMatch, Title: "the first", Server: floorName, CPUMicros: 40, RatioToFloor: 1},
			{Case: notebookOneMatch, Title: "the first", Server: sallyportName, CPUMicros: 80, RatioToFloor: 2},
			{Case: notebookNoMatch, Title: "the second", Server: sallyportName, RatioToFloor: 2.01},
			{Case: notebookManyMatch, Title: "the third", Server: sallyportName, RatioToFloor: 2.4, PeakRSSMiB: 100},
			{Case: libraryAdd, Title: "the fourth", Server: libraryName, RatioToFloor: 4},
			{Case: libraryNothing, Title: "the fifth", Server: libraryName, RatioToFloor: 3.5},
			{Case: libraryValidate, Title: "the sixth", Server: libraryName, RatioToFloor: 3},
			{Case: conversionTyped, Title: "the seventh", Server: neighbourName, RatioToFloor: 5},
			{Case: conversionTyped, Title: "the seventh", Server: libraryName, RatioToFloor: 2},
			{Case: conversionBytes, Title: "the eighth", Server: libraryName, RatioToFloor: 1.4},
			{Case: imagePullNothing, Title: "a policy", Server: policiesName, RatioToFloor: 2.2},
			{Case: imagePullChange, Title: "a policy", Server: policiesName, RatioToFloor: 2.5},
			{Case: imagePullValidate, Title: "a policy", Server: policiesName, RatioToFloor: 2.2},
			{Case: serviceTypeAllowed, Title: "a policy", Server: policiesName, RatioToFloor: 1.9},
			{Case: projectLimitStamp, Title: "a policy", Server: policiesName, RatioToFloor: 1.9},
			{Case: projectLimitCount, Title: "a policy", Server: policiesName, RatioToFloor: 1.9},
			{Case: datasetTwo, Title: "datasets", Server: datasetsName, RatioToFloor: 3.5, PeakRSSMiB: 256},
			{Case: datasetNone, Title: "datasets", Server: datasetsName, RatioToFloor: 2},
			{Case: volumeLabelled, Title: "a volume", Server: cloudName, RatioToFloor: 2.5},
			{Case: pod128KB, Title: "a large pod", Server: sallyportName, RatioToFloor: 7.5},
			{Case: variables1000, Title: "a large pod", Server: sallyportName, RatioToFloor: 9},
			{Case: notebook20Match, Title: "a large pod", Server: sallyportName, RatioToFloor: 7.5},
			{Case: rolloutNone, Title: "no rollout", Server: sallyportName, CPUMicros: 80},
			{Case: rolloutInProgress, Title: "a rollout", Server: sallyportName, CPUMicros: 84},
			{Case: usageOneMatch, Title: "usage", Server: sallyportName, CPUMicros: 80},
			{Case: usageOneMatch, Title: "usage", Server: usageName, CPUMicros: 92},
			{Case: podTemplateCreated, Title: "a policy", Server: policiesName, RatioToFloor: 11},
			{Case: podTemplateScaled, Title: "a policy", Server: policiesName, RatioToFloor: 3.5},
		},
		Volumes: []creation{{Server: volumePatchName, CreatesPerSecond: 400}, {Server: cloudName, CreatesPerSecond: 380}},
		Listings: []listing{
			{Server: conversionFloorName, Objects: 5000, Seconds: 1, CPUMicrosPerObject: 50, RatioToFloor: 1},
			{Server: neighbourName, Objects: 5000, Seconds: 2, CPUMicrosPerObject: 206.25, RatioToFloor: 4.125},
			{Server: libraryName, Objects: 5000, Seconds: 1.8, CPUMicrosPerObject: 112.5, RatioToFloor: 2.25},
		},
		Exported: []creation{{CreatesPerSecond: 600}, {Server: sallyportName, CreatesPerSecond: 300}, {Server: exportedName, CreatesPerSecond: 150}},
		Backstop: []creation{
			{Server: backstopName(0), CreatesPerSecond: 600}, {Server: backstopName(10), CreatesPerSecond: 500}, {Server: backstopName(1000), CreatesPerSecond: 450},
		},
		Freshness: []freshness{
			{100, creators, creation{Server: cachedName, CreatesPerSecond: 400}}, {100, creators, creation{Server: consistentName, CreatesPerSecond: 60}},
			{100, crowd, creation{Server: cachedName, CreatesPerSecond: 500}}, {100, crowd, creation{Server: consistentName, CreatesPerSecond: 301}},
			{1000, crowd, creation{Server: cachedName, CreatesPerSecond: 500}}, {1000, crowd, creation{Server: consistentName, CreatesPerSecond: 100}},
		},
		ColdStartMillis: 100, StartSeconds: 2, IdleRSSMiB: 64, IdleAnonymousMiB: 24, DatasetStartSeconds: 5,
		Creations: []creation{{CreatesPerSecond: 600}, {Server: sallyportName, Protocol: "HTTP/1.1"}},
	}
}

// The limits that the results miss are told by name, so that a new one changes no line
// here but those of someResults.
func TestJudge(t *testing.T) {
	const none = "notebook pod, 11 PodDefaults, none matches"
	tests := map[string]struct {
		change func(*results)
		missed []string // besides none, which someResults misses
	}{
		"a value at the limit holds, one above does not": {func(*results) {}, nil},
		"many are judged against the first row":          {func(r *results) { r.Reviews[3].RatioToFloor = 2.41 }, []string{"10,000 PodDefaults, 1 matches"}},
		"memory":                                         {func(r *results) { r.Reviews[3].PeakRSSMiB = 128.1 }, []string{"peak RSS with 10,000 PodDefaults"}},
		"a slow start":                                   {func(r *results) { r.StartSeconds = 2.01 }, []string{"start to ready with 10,000 PodDefaults"}},
		"a slow command":                                 {func(r *results) { r.ColdStartMillis = 100.1 }, []string{"sallyport version, from its start to its end"}},
		"memory at rest":                                 {func(r *results) { r.IdleAnonymousMiB = 24.1 }, []string{"RSS at rest, without files"}},
		"a library that costs too much":                  {func(r *results) { r.Reviews[4].RatioToFloor = 4.01 }, []string{"Mutate[*corev1.Pod] adds to each container"}},
		"typed handlers without changes": {
			func(r *results) { r.Reviews[5].RatioToFloor = 3.51; r.Reviews[6].RatioToFloor = 3.01 },
			[]string{"Mutate[*corev1.Pod] changes nothing", "Validate[*corev1.Pod]"},
		},
		"a conversion that costs too much": {
			func(r *results) { r.Reviews[8].RatioToFloor = 2.01; r.Reviews[9].RatioToFloor = 1.41 },
			[]string{"CronTab v1beta1 to v1, typed", "what that adds to the floor", "CronTab, apiVersion alone"},
		},
		"datasets that cost too much": {
			func(r *results) {
				r.Reviews[16].RatioToFloor, r.Reviews[16].PeakRSSMiB, r.Reviews[17].RatioToFloor = 3.51, 256.1, 2.01
				r.DatasetStartSeconds = 5.01
			},
			[]string{"dataset, pod with two datasets", "dataset, pod that does not ask", "peak RSS, 5,000 datasets, 20,000 claims", "start to ready with them"},
		},
		"a policy that costs more with every PodDefault": {
			func(r *results) { r.Backstop[2].CreatesPerSecond = 380 },
			[]string{"no policy / policy with 1,000 PodDefaults", "policy with 10 / with 1,000 PodDefaults"},
		},
		"policies that cost more than twice the webhook": {
			func(r *results) { r.Exported[2].CreatesPerSecond = 149 }, []string{"webhook / policies, 11 PodDefaults"},
		},
		"a freshness that costs too much": {
			func(r *results) { r.Freshness[3].CreatesPerSecond = 299 }, []string{"freshness Cached / Consistent, 128 clients"},
		},
		"a LIST that costs too much": {
			func(r *results) {
				r.Listings[2] = listing{Server: libraryName, Seconds: 1.81, RatioToFloor: 2.26}
			},
			[]string{"LIST of 5,000, CPU added to the floor", "LIST of 5,000, time"},
		},
		"a rollout that costs too much": {func(r *results) { r.Reviews[23].CPUMicros = 84.1 }, []string{"rollout in progress"}},
		"a check of usage that costs too much": {
			func(r *results) { r.Reviews[25].CPUMicros = 92.1 }, []string{"notebook pod, 1 matches, usage Check"},
		},
		"a policy that costs too much": {func(r *results) { r.Reviews[10].RatioToFloor = 2.21 }, []string{"imagepull, nothing to set"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := someResults()
			test.change(r)
			verdicts := judge(limitsOf(schedule{}), r)
			if diff := cmp.Diff(append([]string{none}, test.missed...), missed(verdicts)); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
			if allHold(verdicts) {
				t.Error("one limit does not hold, and still all do")
			}
		})
	}
	good := someResults()
	good.Reviews[2].RatioToFloor = 1.5
	if verdicts := judge(limitsOf(schedule{}), good); !allHold(verdicts) || len(missed(verdicts)) > 0 {
		t.Errorf("all limits hold, and still these do not: %q", missed(verdicts))
	}
	if got := missed(judge(limitsOf(schedule{}), &results{})); len(got) != len(limitsOf(schedule{})) {
		t.Errorf("nothing is measured, and still only these do not hold: %q", got)
	}
}

func missed(verdicts []verdict) []string {
	var names []string
	for _, v := range verdicts {
		if !v.Holds {
			names = append(names, v.Name)
		}
	}
	return names
}

func TestAPartIsJudgedByItsLimits(t *testing.T) {
	r := someResults()
	r.Reviews, r.Creations, r.StartSeconds = r.Reviews[7:], nil, 0
	verdicts := judge(limitsOf(schedule{Only: partConversion}), r)
	if len(verdicts) != 5 || !allHold(verdicts) {
		t.Errorf("conversion by itself: %+v", verdicts)
	}
	if whole, large := len(limitsOf(schedule{})), len(limitsOf(schedule{Only: partScale})); whole+large != len(limits) || large == 0 {
		t.Errorf("a whole run is judged by %d limits, a large cluster by %d, of %d", whole, large, len(limits))
	}
	var text strings.Builder
	if err := writeText(&text, r, verdicts); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "not measured") || strings.Contains(text.String(), "Notebook pods created") {
		t.Errorf("what was left out is reported:\n%s", &text)
	}
}

func TestReport(t *testing.T) {
	r := someResults()
	verdicts := judge(limitsOf(schedule{}), r)
	var text strings.Builder
	if err := writeText(&text, r, verdicts); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the first\n", "notebook 7,535 bytes", "no webhook", "PASS", "FAIL"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if strings.Count(text.String(), "the first\n") != 1 {
		t.Errorf("the title of a case is not there once:\n%s", &text)
	}

	r.Quick = true
	text.Reset()
	if err := writeText(&text, r, verdicts); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "PASS") || strings.Contains(text.String(), "FAIL") {
		t.Errorf("a quick run is judged:\n%s", &text)
	}

	var data strings.Builder
	if err := writeJSON(&data, r, verdicts); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Reviews []measurement
		Limits  []verdict
	}
	if err := json.Unmarshal([]byte(data.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Reviews) != len(r.Reviews) || len(got.Limits) != len(verdicts) || !cmp.Equal(got.Reviews[1], r.Reviews[1]) || got.Limits[0] != verdicts[0] {
		t.Errorf("not all came back from JSON: %+v", got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 11: "11", 999: "999", 1000: "1,000", 10000: "10,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestTablesAreThoseOfTheFile(t *testing.T) {
	r := someResults()
	var data, direct, read bytes.Buffer
	from := filepath.Join(t.TempDir(), "results.json")
	if err := writeJSON(&data, r, judge(limitsOf(schedule{}), r)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(from, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeText(&direct, r, judge(limitsOf(schedule{}), r)), run(t.Context(), []string{"-from", from}, &read, io.Discard)); err != nil {
		t.Fatal(err)
	}
	if direct.String() != read.String() {
		t.Errorf("-from prints other tables:\n%s\n%s", &direct, &read)
	}
	if err := run(t.Context(), []string{"-from", from + ".absent"}, &read, io.Discard); err == nil {
		t.Error("a file that is not there has tables")
	}
}
