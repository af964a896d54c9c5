// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// tolerated is how much worse a row may be, beyond what its spread explains.
const tolerated = 1.08

// errWorse is the end of a comparison in which a row got worse.
var errWorse = errors.New("a row got worse by more than 8 % beyond the noise, see the table")

// A row is a figure of a run with all its samples, of which less is better. Rows are of
// different runs if their names are the same.
type row struct {
	name, unit string
	samples    []float64
}

// rows are the figures that have samples, in the order in which they are printed. Costs
// are relative to what was measured beside them in the same round or turn, so that runs on
// machines of different speed can be compared: reviews to the floor, creations to those
// without a webhook.
func (r *results) rows() []row {
	var rows []row
	for _, m := range r.Reviews {
		if m.Server != floorName && m.Server != conversionFloorName && len(m.Ratios) > 0 {
			rows = append(rows, row{m.Title + ": " + m.Server, "× floor", m.Ratios})
		}
	}
	for _, table := range []struct {
		name string
		rows []creation
	}{{"pods created", r.Creations}, {"volumes created", r.Volumes}, {"burst", r.Burst}, {"export", r.Exported}, {"backstop", r.Backstop}} {
		for i, c := range table.rows {
			if base := table.rows[0].Rates; i > 0 && len(c.Rates) == len(base) && len(base) > 0 {
				rows = append(rows, row{table.name + ": " + c.Server, "× time of the first", quotients(base, c.Rates)})
			}
		}
	}
	if len(r.Starts) > 0 {
		rows = append(rows, row{"start to ready", "s", r.Starts})
	}
	return rows
}

func quotients(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// compareFiles compares what two runs have written, see [compare].
func compareFiles(w io.Writer, oldFile, newFile string) error {
	before, err := readResults(oldFile)
	if err != nil {
		return err
	}
	after, err := readResults(newFile)
	if err != nil {
		return err
	}
	return compare(w, before.results, after.results)
}

// compare prints for each row of two runs the median of both, their ratio, and the range in
// which that is with 95 % confidence, given how far the samples of each are apart. It fails if
// the least that the ratio may be is above 1.08. A row with too few samples for a range has
// none, and fails nothing; one that is in a single run is named.
func compare(w io.Writer, before, after *results) error {
	if before.Quick || after.Quick {
		return errors.New("a quick run means nothing: compare full ones")
	}
	out := &strings.Builder{}
	if a, b := before.Machine, after.Machine; a.CPUs != b.CPUs || a.Go != b.Go || a.APIServer != b.APIServer {
		fmt.Fprintf(out, "Not the same machine: %d CPUs, %s, kube-apiserver %s, and %d CPUs, %s, kube-apiserver %s.\n", a.CPUs, a.Go, a.APIServer, b.CPUs, b.Go, b.APIServer)
	}
	fmt.Fprintf(out, "%-72s %8s %8s %8s %15s\n", "", "old", "new", "new/old", "with 95 %")
	rest := after.rows()
	common, worse := 0, false
	for _, old := range before.rows() {
		i := slices.IndexFunc(rest, func(r row) bool { return r.name == old.name })
		if i < 0 {
			fmt.Fprintf(out, "%-72s only in the old run\n", old.name)
			continue
		}
		c := comparisonOf(old, rest[i])
		rest = slices.Delete(rest, i, i+1)
		common++
		worse = worse || c.worse()
		fmt.Fprintf(out, "%-72s %s\n", old.name, c)
	}
	for _, r := range rest {
		fmt.Fprintf(out, "%-72s only in the new run\n", r.name)
	}
	_, err := io.WriteString(w, out.String())
	switch {
	case err != nil:
		return err
	case common == 0:
		return errors.New("the two runs have no row in common")
	case worse:
		return errWorse
	}
	return nil
}

// A comparison is what became of a row.
type comparison struct {
	old, new  float64
	unit      string
	least     float64 // that new/old may be
	most      float64
	confident bool // there are samples enough to say so
}

func comparisonOf(old, now row) comparison {
	a, b := summary(old.samples), summary(now.samples)
	c := comparison{old: a.Center, new: b.Center, unit: old.unit, least: b.Lo / a.Hi, most: b.Hi / a.Lo}
	c.confident = finite(a.Lo, a.Hi, b.Lo, b.Hi) && a.Lo > 0
	return c
}

// summary is the median and its range where there are samples enough for the order of samples
// to tell it, six, and the mean and its range if they are fewer.
func summary(samples []float64) benchmath.Summary {
	sample := benchmath.NewSample(slices.Clone(samples), &benchmath.DefaultThresholds)
	if len(samples) < 6 {
		return benchmath.AssumeNormal.Summary(sample, 0.95)
	}
	return benchmath.AssumeNothing.Summary(sample, 0.95)
}

func finite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) })
}

func (c comparison) worse() bool { return c.confident && c.least > tolerated }

func (c comparison) String() string {
	span, verdict := "too few samples", ""
	if c.confident {
		span = fmt.Sprintf("%.2f to %.2f", c.least, c.most)
	}
	switch {
	case c.worse():
		verdict = "WORSE"
	case c.confident && c.most < 1:
		verdict = "better"
	}
	return strings.TrimRight(fmt.Sprintf("%8.2f %8.2f %8.2f %15s  %-20s %s", c.old, c.new, c.new/c.old, span, c.unit, verdict), " ")
}
