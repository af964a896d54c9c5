// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// around has nine samples, so many percent apart in all.
func around(center, percent float64) []float64 {
	samples := make([]float64, 9)
	for i := range samples {
		samples[i] = center * (1 + percent/100*(float64(i)-4)/8)
	}
	return samples
}

func runWith(ratios, rates []float64) *results {
	return &results{
		Reviews: []measurement{
			{Case: notebookOneMatch, Title: "a pod", Server: floorName, Ratios: around(1, 0)},
			{Case: notebookOneMatch, Title: "a pod", Server: sallyportName, Ratios: ratios},
		},
		Creations: []creation{{Rates: []float64{600, 600, 600}}, {Server: sallyportName, Rates: rates}},
	}
}

func TestCompare(t *testing.T) {
	steady := []float64{300, 300.1, 299.9}
	for name, tc := range map[string]struct {
		old, new *results
		want     string // in the table
		err      string
	}{
		"the same":                         {runWith(around(2, 2), steady), runWith(around(2, 2), steady), "2.00     2.00     1.00", ""},
		"better":                           {runWith(around(2, 2), steady), runWith(around(1.5, 2), steady), "better", ""},
		"worse by 7 %":                     {runWith(around(2, 0.1), steady), runWith(around(2.14, 0.1), steady), "1.07", ""},
		"worse by 9 %":                     {runWith(around(2, 0.1), steady), runWith(around(2.18, 0.1), steady), "WORSE", errWorse.Error()},
		"worse by 9 %, which may be noise": {runWith(around(2, 10), steady), runWith(around(2.18, 10), steady), "1.09", ""},
		"worse by half":                    {runWith(around(2, 10), steady), runWith(around(3, 10), steady), "WORSE", errWorse.Error()},
		"slower creations":                 {runWith(around(2, 1), steady), runWith(around(2, 1), []float64{200, 200.1, 199.9}), "1.50", errWorse.Error()},
		"creations with few samples":       {runWith(around(2, 1), []float64{300, 100, 200}), runWith(around(2, 1), []float64{200, 90, 150}), "", ""},
		"one sample":                       {&results{Starts: []float64{1}}, &results{Starts: []float64{9}}, "too few samples", ""},
		"other rows":                       {&results{Starts: []float64{1}}, runWith(around(2, 1), steady), "only in the old run", "no row in common"},
		"a quick run":                      {&results{Quick: true}, runWith(around(2, 1), steady), "", "quick"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := compare(&out, tc.old, tc.new)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got the error %v, want %q", err, tc.err)
			}
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("no %q in\n%s", tc.want, &out)
			}
		})
	}
}

func TestCompareReadsWhatRunsWrite(t *testing.T) {
	steady := []float64{300, 300.1, 299.9}
	folder := t.TempDir()
	before, after := filepath.Join(folder, "bin", "old.json"), filepath.Join(folder, "bin", "new.json")
	if err := errors.Join(writeFile(before, runWith(around(2, 1), steady), nil), writeFile(after, runWith(around(4, 1), steady), nil)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-compare", before, after}, &out, &out); !errors.Is(err, errWorse) {
		t.Errorf("got %v and\n%s", err, &out)
	}
	if err := run(t.Context(), []string{"-compare", before, before}, &out, &out); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"-compare"}, {"-compare", before}, {"-compare", before, filepath.Join(folder, "none.json")}} {
		if err := run(t.Context(), args, &out, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
