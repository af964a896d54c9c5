// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestMain is main for the servers, which a run starts from its own binary.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	if len(os.Args) > 1 {
		if serve, ok := subcommands[os.Args[1]]; ok {
			exit(serve(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func TestOnlyALargeClusterHasASize(t *testing.T) {
	for _, args := range [][]string{{"-poddefaults", "1000"}, {"-poddefaults", "10", "-only", "scale"}, {"-poddefaults", "-1", "-only", "scale"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "-only scale") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// The quick run starts the API server and all servers, checks their answers and
// goes through every measurement. What it measures is not looked at.
func TestQuickRunOnARealAPIServer(t *testing.T) {
	var out, log bytes.Buffer
	file := filepath.Join(t.TempDir(), "bin", "results.json")
	if err := run(t.Context(), []string{"-quick", "-json", "-out", file, "-sallyport", lab.Command(t, "cmd/sallyport")}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if written, err := os.ReadFile(file); err != nil || !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file holds %d bytes, %v; printed were %d", len(written), err, out.Len())
	}
	var got struct {
		results
		Limits []verdict `json:"limits"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	stages, err := planStages(quickPlan)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stages {
		if s.burst || !quickPlan.measures(s.part) { // a burst has no reviews of its own
			continue
		}
		for _, c := range s.cases {
			for _, name := range s.servers {
				m, found := got.find(c.id, name)
				if !found || m.Reviews == 0 || m.CPUMicros <= 0 || m.RatioToFloor <= 0 || m.PeakRSSMiB <= 0 || m.P99Micros < m.P50Micros {
					t.Errorf("case %q on %s: %+v (found: %t)", c.id, name, m, found)
				}
			}
		}
	}
	if len(got.Creations) != 4 {
		t.Errorf("creations without a webhook and with three: got %d", len(got.Creations))
	}
	for _, c := range got.Creations {
		if c.Pods != quickPlan.Creates*quickPlan.CreateTurns || c.CreatesPerSecond <= 0 {
			t.Errorf("creations: %+v", c)
		}
	}
	if len(got.Burst) != 3 {
		t.Errorf("a burst without a webhook and with two: got %d", len(got.Burst))
	}
	for _, c := range got.Burst {
		if c.Pods != quickPlan.Burst*quickPlan.CreateTurns || c.CreatesPerSecond <= 0 || c.P99Millis <= 0 || len(c.Rates) != quickPlan.CreateTurns {
			t.Errorf("a burst: %+v", c)
		}
	}
	if got.StartPeakAnonymousMiB < 1 || got.StartPeakRSSMiB < got.StartPeakAnonymousMiB || got.IdleAnonymousMiB < 1 || got.IdleRSSMiB < got.IdleAnonymousMiB || len(got.Starts) != quickPlan.Starts {
		t.Errorf("starts %v, at most %v MiB, %v MiB at rest", got.Starts, got.StartPeakRSSMiB, got.IdleRSSMiB)
	}
	for _, c := range got.Backstop {
		if c.Pods != quickPlan.Creates*quickPlan.CreateTurns || c.CreatesPerSecond <= 0 {
			t.Errorf("creations with a policy: %+v", c)
		}
	}
	exports := lab.KubernetesMinor(t) >= 36 // before, there are no mutating policies
	want := 0
	if exports {
		want = 3
	}
	if len(got.Exported) != want {
		t.Errorf("creations without a webhook, with one, and with policies: got %d", len(got.Exported))
	}
	for _, c := range got.Exported {
		if c.Pods != quickPlan.Creates*quickPlan.CreateTurns || c.CreatesPerSecond <= 0 {
			t.Errorf("creations with policies: %+v", c)
		}
	}
	if len(got.Freshness) != 6 {
		t.Errorf("creations with each freshness: got %d", len(got.Freshness))
	}
	for _, c := range got.Freshness {
		if c.Pods != quickPlan.Creates*quickPlan.CreateTurns || c.CreatesPerSecond <= 0 || c.PodDefaults == 0 || c.Clients == 0 {
			t.Errorf("creations with a freshness: %+v", c)
		}
	}
	if len(got.Overload) != 4 {
		t.Errorf("pods at a rate with each freshness: got %d", len(got.Overload))
	}
	for _, o := range got.Overload {
		if o.Pods != quickPlan.CreateTurns*o.Load*2 || len(o.RefusedPercent) != quickPlan.CreateTurns || o.P99Millis < o.P50Millis || (o.P50Millis <= 0) != (o.Refused == o.Pods) {
			t.Errorf("pods at a rate: %+v", o)
		}
	}
	for i, v := range got.Limits {
		if !v.Measured && (exports || limits[i].Part != partExport) {
			t.Errorf("limit %q has no figure", v.Name)
		}
	}
	if want := len(limitsOf(quickPlan)); len(got.Limits) != want {
		t.Errorf("got %d limits of %d", len(got.Limits), want)
	}
}

// The part that is a large cluster goes through its measurements with a small one.
func TestQuickRunOfALargeClusterOnARealAPIServer(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-quick", "-only", partScale, "-json", "-out", "", "-sallyport", lab.Command(t, "cmd/sallyport")}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var got struct {
		results
		Limits []verdict `json:"limits"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, v := range got.Limits {
		if !v.Measured {
			t.Errorf("limit %q has no figure", v.Name)
		}
	}
	if len(got.Limits) == 0 || got.Scale == nil || len(got.Scale.Caches) != len(caches) {
		t.Fatalf("limits %v, scale %+v", got.Limits, got.Scale)
	}
	for _, c := range got.Scale.Caches {
		if want := quickPlan.Scale.PodDefaults + perNamespace; c.Objects != want || c.Seconds <= 0 || c.CPUSeconds <= 0 || c.LiveMiB <= 0 {
			t.Errorf("%+v, want %d objects", c, want)
		}
	}
	live := got.Scale
	if c := live.Conflicts; c.Objects == 0 || c.Known != c.Objects {
		t.Errorf("conflicts are %+v", c)
	}
	if d := live.Drift; d.Pods != quickPlan.Scale.Pods || d.Requests == 0 || d.PeakRSSMiB < 1 {
		t.Errorf("drift is %+v, want %d pods", d, quickPlan.Scale.Pods)
	}
	if c := live.Changes; c.Samples != quickPlan.Changes || c.OtherChanges == 0 {
		t.Errorf("changes are %+v", c)
	}
	table := new(strings.Builder)
	if writeScale(table, live); !strings.Contains(table.String(), "drift of 60 pods") || !strings.Contains(table.String(), "reads of others") {
		t.Errorf("the table is\n%s", table)
	}
}

func TestRunRefusesWhatItDoesNotKnow(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":                   {[]string{"-fast"}, "-fast"},
		"an argument":                       {[]string{"fast"}, `unexpected argument "fast"`},
		"a capture outside of the root":     {[]string{"-capture"}, "run from the root of the repository"},
		"no API server to measure it with":  {[]string{"-quick", "-sallyport", "none"}, "KUBEBUILDER_ASSETS is not set"},
		"API server binaries without files": {[]string{"-quick", "-sallyport", "none"}, "holds no etcd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assets := ""
			if strings.HasSuffix(name, "without files") {
				assets = t.TempDir()
			}
			t.Setenv("KUBEBUILDER_ASSETS", assets)
			err := run(context.Background(), test.args, new(bytes.Buffer), new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %q", err, test.want)
			}
		})
	}
}
