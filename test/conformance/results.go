// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// passed is what Ginkgo calls it.
const passed = "passed"

// outcome is what became of a case in a run.
type outcome struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"`
}

var labels = regexp.MustCompile(`\s*\[[A-Za-z:-]+\]\s*`)

// shortName is the name without the labels in brackets.
func (o outcome) shortName() string { return strings.TrimSpace(labels.ReplaceAllString(o.Name, " ")) }

// run is what became of each case in one run.
type run struct{ outcomes []outcome }

func (r *run) add(o outcome) { r.outcomes = append(r.outcomes, o) }

func (r *run) passes() bool {
	return len(r.outcomes) > 0 && !slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.State != passed })
}

func (r *run) find(name string) (outcome, bool) {
	i := slices.IndexFunc(r.outcomes, func(o outcome) bool { return o.shortName() == name })
	if i < 0 {
		return outcome{State: "not run"}, false
	}
	return r.outcomes[i], true
}

// results are all runs.
type results struct{ runs []*run }

func (r *results) begin() *run {
	r.runs = append(r.runs, &run{})
	return r.runs[len(r.runs)-1]
}

// hold tells whether the same cases have passed in all runs, and no other was run.
func (r *results) hold() bool {
	names := r.names()
	return len(r.runs) > 0 && !slices.ContainsFunc(r.runs, func(run *run) bool { return !run.passes() || len(run.outcomes) != len(names) })
}

// names are those of the cases of any run, sorted.
func (r *results) names() []string {
	var names []string
	for _, run := range r.runs {
		for _, o := range run.outcomes {
			names = append(names, o.shortName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// table is a table in Markdown: a line for each case and a column for each run, and
// below it how many there were of what.
func (r *results) table() string {
	names := r.names()
	width := len("case")
	for _, name := range names {
		width = max(width, len(name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %-*s |", width, "case")
	for n := range r.runs {
		fmt.Fprintf(&b, " %-14s |", fmt.Sprintf("run %d", n+1))
	}
	fmt.Fprintf(&b, "\n|-%s-|", strings.Repeat("-", width))
	for range r.runs {
		fmt.Fprintf(&b, "-%s-|", strings.Repeat("-", 14))
	}
	counts := make([]map[string]int, len(r.runs))
	for _, name := range names {
		fmt.Fprintf(&b, "\n| %-*s |", width, name)
		for n, run := range r.runs {
			o, there := run.find(name)
			text := o.State
			if there {
				text = fmt.Sprintf("%s %.0f s", word(o.State), o.Seconds)
			}
			fmt.Fprintf(&b, " %-14s |", text)
			if counts[n] == nil {
				counts[n] = map[string]int{}
			}
			counts[n][word(o.State)]++
		}
	}
	b.WriteString("\n\n")
	for n := range r.runs {
		fmt.Fprintf(&b, "run %d: %d pass, %d fail, %d skip of %d\n", n+1, counts[n]["pass"], len(names)-counts[n]["pass"]-counts[n]["skip"], counts[n]["skip"], len(names))
	}
	return b.String()
}

// word is a state of Ginkgo's in the words of the table.
func word(state string) string {
	switch state {
	case passed:
		return "pass"
	case "skipped", "pending":
		return "skip"
	case "failed":
		return "FAIL"
	default:
		return strings.ToUpper(state) // timed out, panicked, interrupted
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
