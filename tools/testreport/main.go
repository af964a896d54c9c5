// SPDX-License-Identifier: Apache-2.0

// Command testreport reads what `go test -json` wrote, in one file a stage, and prints where
// the time went: the slowest packages and tests, tests that failed first and passed when they
// were run again, and the totals. Whether tests passed is for those who ran them to say.
//
// Usage: testreport [-since UNIXSECONDS] FILE...
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	since := flag.Int64("since", 0, "when all began, for the total; seconds since 1970")
	flag.Parse()
	r := newReport()
	for _, name := range flag.Args() {
		if err := r.readFile(name); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(1)
		}
	}
	var total time.Duration
	if *since > 0 {
		total = time.Since(time.Unix(*since, 0))
	}
	r.print(os.Stdout, total)
}

const slowest = 10

// module is left out of the names of packages.
const module = "github.com/sallyport-io/sallyport/"

// An event is a line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

type test struct{ pkg, name string }

type outcome struct {
	failed, passed int // attempts
	last           string
	elapsed        time.Duration // of the longest attempt
	parent         bool          // its time is that of its subtests
}

type report struct {
	packages map[string]time.Duration // of all stages and attempts
	cached   map[string]bool
	tests    map[test]*outcome
}

func newReport() *report {
	return &report{packages: map[string]time.Duration{}, cached: map[string]bool{}, tests: map[test]*outcome{}}
}

func (r *report) readFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	if err := r.read(file); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	return file.Close()
}

func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("a line that is not an event of go test -json: %w", err)
			}
			r.add(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	took := time.Duration(e.Elapsed * float64(time.Second))
	name := strings.TrimPrefix(e.Package, module)
	if e.Test == "" {
		switch e.Action {
		case "pass", "fail":
			r.packages[name] += took
		case "output":
			if strings.HasSuffix(e.Output, "\t(cached)\n") {
				r.cached[name] = true
			}
		}
		return
	}
	if e.Action != "pass" && e.Action != "fail" {
		return
	}
	o := r.outcome(test{name, e.Test})
	if e.Action == "pass" {
		o.passed++
	} else {
		o.failed++
	}
	o.last, o.elapsed = e.Action, max(o.elapsed, took)
	if i := strings.LastIndexByte(e.Test, '/'); i >= 0 {
		r.outcome(test{name, e.Test[:i]}).parent = true
	}
}

func (r *report) outcome(of test) *outcome {
	if r.tests[of] == nil {
		r.tests[of] = &outcome{}
	}
	return r.tests[of]
}

func (r *report) print(to io.Writer, total time.Duration) {
	_, _ = fmt.Fprintf(to, "\nslowest packages:\n")
	packages := slices.SortedFunc(maps.Keys(r.packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.packages[b], r.packages[a]), cmp.Compare(a, b))
	})
	var sum time.Duration
	for i, name := range packages {
		sum += r.packages[name]
		if i < slowest {
			_, _ = fmt.Fprintf(to, "%8.1f s  %s\n", r.packages[name].Seconds(), name)
		}
	}

	_, _ = fmt.Fprintf(to, "slowest tests:\n")
	var leaves, flaky []test
	var failed int
	for of, o := range r.tests {
		if o.parent {
			continue
		}
		leaves = append(leaves, of)
		switch {
		case o.last == "fail":
			failed++
		case o.failed > 0:
			flaky = append(flaky, of)
		}
	}
	slices.SortFunc(leaves, func(a, b test) int {
		return cmp.Or(cmp.Compare(r.tests[b].elapsed, r.tests[a].elapsed), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	for _, of := range leaves[:min(slowest, len(leaves))] {
		_, _ = fmt.Fprintf(to, "%8.1f s  %s %s\n", r.tests[of].elapsed.Seconds(), of.pkg, of.name)
	}

	slices.SortFunc(flaky, func(a, b test) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name)) })
	for _, of := range flaky {
		_, _ = fmt.Fprintf(to, "FLAKY: %s %s failed, and passed when it was run again\n", of.pkg, of.name)
	}
	_, _ = fmt.Fprintf(to, "%d tests in %d packages (%d cached), %.0f s of tests, %d failed, %d flaky",
		len(leaves), len(r.packages), len(r.cached), sum.Seconds(), failed, len(flaky))
	if total > 0 {
		_, _ = fmt.Fprintf(to, "; total %s", total.Round(time.Second))
	}
	_, _ = fmt.Fprintln(to)
}
