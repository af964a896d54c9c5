// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/internal/callmetrics"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/injection"
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/internal/manifest"
)

// A piece is a line of a page in the style of its meaning.
type piece struct {
	class, text string
	// pods are named after the text, with links.
	pods []string
}

// A fact is what is known about one side of an object.
type fact struct {
	name   string
	pieces []piece
}

const timeFormat = "2006-01-02 15:04 UTC"

// factsOf are what is known about a PodDefault.
func factsOf(s *injection.Survey, d *injection.Surveyed) []fact {
	var out []fact
	add := func(name string, pieces ...piece) {
		if len(pieces) > 0 {
			out = append(out, fact{name, pieces})
		}
	}
	if d.NamespaceSelector != "" {
		add("Namespaces", piece{class: "code", text: d.NamespaceSelector})
	}
	add("Selects", piece{class: "code", text: d.Selector})
	if d.Mode != "Enforce" {
		add("Mode", piece{class: "note", text: string(d.Mode)})
	}
	if d.Problem != "" {
		add("Problem", piece{class: "fix", text: "It can never work: " + d.Problem})
	}
	var adds, writers, conditions []piece
	for _, field := range d.Adds {
		adds = append(adds, piece{text: strings.TrimSuffix(field.Name+": "+shortList(field.Items, 20), ": ")})
	}
	add("Adds", adds...)
	for _, w := range d.Writers {
		writers = append(writers, piece{text: w.Name + " at " + w.At.Format(timeFormat)})
	}
	add("Written by", writers...)
	for _, c := range d.Conditions {
		conditions = append(conditions, piece{class: conditionClass(c), text: fmt.Sprintf("%s %s: %s", c.Type, c.Status, c.Message)})
	}
	add("Status", conditions...)
	if !s.PodsHidden {
		add("Pods", carriedBy(d)...)
	}
	return out
}

// carriedBy are the pods with a PodDefault, and those that should have it or should not.
func carriedBy(d *injection.Surveyed) []piece {
	var out []piece
	for _, c := range d.Carriers {
		p := piece{text: cli.Count(len(c.Pods), "pod has", "pods have") + " the current version " + c.Version, pods: c.Pods}
		if !c.Current {
			p.class, p.text = "note", cli.Count(len(c.Pods), "pod has", "pods have")+" the older version "+c.Version
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		out = append(out, piece{class: "quiet", text: "no pod has it"})
	}
	if len(d.Without) > 0 {
		out = append(out, piece{"note", cli.Count(len(d.Without), "pod is", "pods are") + " selected and without it", d.Without})
	}
	if len(d.Deselected) > 0 {
		out = append(out, piece{"note", cli.Count(len(d.Deselected), "pod has", "pods have") + " it and would not be selected now", d.Deselected})
	}
	return out
}

// whenItFails says what happens if a webhook or a policy fails.
func whenItFails(link inspect.Listed) []piece {
	out := []piece{{text: link.FailurePolicy}}
	if link.TimeoutSeconds > 0 {
		out = append(out, piece{class: "quiet", text: fmt.Sprintf("after %d s", link.TimeoutSeconds)})
	}
	if link.Reinvoked {
		out = append(out, piece{class: "quiet", text: "reinvoked"})
	}
	return out
}

// counted says what the API server counted for a webhook or a policy.
func (c *calls) counted(u *callmetrics.Usage) []piece {
	switch {
	case c == nil:
		return []piece{{class: "quiet", text: "unknown"}}
	case u == nil:
		return []piece{{class: "quiet", text: "none"}}
	}
	out := []piece{{text: fmt.Sprintf("%.0f, 99 %% within %.1f ms", u.Calls, 1000*u.P99)}}
	if u.Rejected > 0 {
		out = append(out, piece{text: fmt.Sprintf("%.0f refused", u.Rejected)})
	}
	if u.Failed > 0 || u.FailedOpen > 0 {
		out = append(out, piece{class: "fix", text: fmt.Sprintf("%.0f failed, %.0f failed open", u.Failed, u.FailedOpen)})
	}
	return out
}

// matrixOf are the conflicts of one object with the others that have any, in their order.
func matrixOf(s *injection.Survey, i int) []piece {
	var out []piece
	for _, j := range conflicting(s) {
		at := slices.IndexFunc(s.Conflicts, func(c injection.Conflict) bool { return c.A == min(i, j) && c.B == max(i, j) })
		if at < 0 {
			out = append(out, piece{class: "quiet", text: "-"})
		} else {
			out = append(out, piece{class: "fix", text: shortList(s.Conflicts[at].Places, 2)})
		}
	}
	return out
}

// printable is the text of a piece without characters that could hide something.
func (p piece) printable() string { return manifest.Printable(p.text) }
