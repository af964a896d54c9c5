// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A result is a line of the table.
type result struct {
	Row           string   `json:"row"`
	What          string   `json:"what"`
	Allowed       string   `json:"allowed"`
	Rounds        int      `json:"rounds"`
	Creates       int      `json:"creates"`
	CreateSeconds float64  `json:"createSeconds"`
	Failed        int      `json:"failed"`
	Uninjected    int      `json:"uninjected"`
	Note          string   `json:"note,omitempty"`
	Problems      []string `json:"problems,omitempty"`
	Seconds       float64  `json:"seconds"`
}

func (r *result) problemf(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// notef adds to what the table says beside the verdict.
func (r *result) notef(format string, args ...any) {
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += fmt.Sprintf(format, args...)
}

func (r *result) verdict() string {
	if len(r.Problems) > 0 {
		return "FAILS"
	}
	return "holds"
}

func (r *result) rate() float64 {
	if r.CreateSeconds == 0 {
		return 0
	}
	return float64(r.Creates) / r.CreateSeconds
}

// requireNothingLost is the verdict of rows that allow no loss at all.
func (r *result) requireNothingLost(t tally) {
	r.requireNoFailure(t.failures, "")
	r.requireInjected(t)
	if t.held > 0 {
		r.problemf("%d creates could not be made: too many waited for an answer", t.held)
	}
}

// requireInjected is the verdict of rows that allow failures.
func (r *result) requireInjected(t tally) {
	if n := len(t.uninjected); n > 0 {
		r.problemf("%d pods were answered or stored without a PodDefault, for example: %s", n, t.uninjected[0])
	}
}

// requireNoFailure reports failures by class.
func (r *result) requireNoFailure(failures []attempt, which string) {
	if len(failures) == 0 {
		return
	}
	r.problemf("%d creates failed%s: %s", len(failures), which, strings.Join(classes(failures, 4), " | "))
}

var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+`)

// classes tells failures apart by their messages, less all that is a number, and
// returns the most frequent.
func classes(failures []attempt, most int) []string {
	count := map[string]int{}
	for _, f := range failures {
		text := changing.ReplaceAllString(f.err.Error(), "N")
		if i := strings.Index(text, "failed calling webhook"); i >= 0 {
			text = text[i:]
		}
		count[text[:min(len(text), 300)]]++
	}
	texts := make([]string, 0, len(count))
	for text := range count {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	out := make([]string, 0, most)
	for i, text := range texts {
		if i == most {
			out = append(out, fmt.Sprintf("and %d other messages", len(texts)-most))
			break
		}
		out = append(out, fmt.Sprintf("%d × %s", count[text], text))
	}
	return out
}

// A report is the table and what it was made with.
type report struct {
	Date       string   `json:"date"`
	Kubernetes string   `json:"kubernetes"`
	Machine    string   `json:"machine"`
	Short      bool     `json:"short"`
	Rows       []result `json:"rows"`
}

func (r *report) describe(c *cluster) {
	r.Date = time.Now().UTC().Format(time.DateOnly)
	r.Kubernetes, r.Machine, r.Short = c.version, machine(), c.settings.short
}

func (r *report) holds() bool {
	return !slices.ContainsFunc(r.Rows, func(row result) bool { return row.verdict() != "holds" })
}

func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// writeText prints the table in Markdown, so that it can be pasted as it is.
func (r *report) writeText(out io.Writer) error {
	length := ""
	if r.Short {
		length = " (short run: less of everything than the rows say)"
	}
	fmt.Fprintf(out, "%s, Kubernetes %s, %s%s\n\n", r.Date, r.Kubernetes, r.Machine, length)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| fault\t| rounds\t| creates\t| creates/s\t| failed\t| stored un-injected\t| allowed\t| verdict\t| note\t|")
	fmt.Fprintln(w, "|---\t|---:\t|---:\t|---:\t|---:\t|---:\t|---\t|---\t|---\t|")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %.0f\t| %d\t| %d\t| %s\t| %s\t| %s\t|\n", row.What, row.Rounds, row.Creates, row.rate(),
			row.Failed, row.Uninjected, row.Allowed, row.verdict(), row.Note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		for _, problem := range row.Problems {
			fmt.Fprintf(out, "\n%s: %s\n", row.Row, problem)
		}
	}
	return nil
}
