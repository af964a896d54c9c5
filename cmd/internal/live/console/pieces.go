// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/calls"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A piece is a line of a page in the style of its meaning.
type piece struct {
	class, text string
	// more is shown if the user opens the piece, with a link.
	more, link string
	// href is where the link leads or, without more, the text.
	href string
	// pods are named after the text, with links.
	pods []string
	// badge is set for a state in a word, and copied for a command.
	badge, copied bool
	// key sorts the piece instead of its text.
	key string
}

// A block is a part of a page. Without columns it has no table, and with empty it says what to do if there are no
// rows.
type block struct {
	heading, text, picture, empty string
	columns                       []string
	rows                          [][]cell
	// lazy replaces rows where there may be thousands.
	lazy lazyRows
}

// all are the rows.
func (b *block) all() lazyRows {
	if b.lazy.count > 0 {
		return b.lazy
	}
	return madeRows(b.rows)
}

// style is the class of a piece.
func (p piece) style() string {
	if p.badge {
		return p.class + " badge"
	}
	return p.class
}

// alignment is the class of a cell.
func (c cell) alignment() string {
	if len(c) > 0 && c[0].class == "number" {
		return "number"
	}
	return ""
}

// A cell of a table.
type cell []piece

// bare reports whether the cell is a text or a number alone, which needs no element of its own.
func (c cell) bare() bool {
	return len(c) == 1 && (c[0].class == "" || c[0].class == "number") && !c[0].badge && !c[0].copied && c[0].more+c[0].href == "" && len(c[0].pods) == 0
}

// text is a cell without a style.
func text(s string) cell { return cell{{text: s}} }

// A fact is what is known about one side of an object.
type fact struct {
	name   string
	pieces cell
}

const timeFormat = "2006-01-02 15:04 UTC"

// factsOf are what is known about a PodDefault.
func factsOf(s *carried.Survey, d *carried.Surveyed) []fact {
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
		conditions = append(conditions, piece{class: conditionClass(c), text: strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Type, c.Status, c.Message), ": ")})
	}
	add("Status", conditions...)
	if !s.PodsHidden {
		add("Pods", carriedBy(d)...)
	}
	return out
}

// carriedBy are the pods with a PodDefault, and those that should have it or should not.
func carriedBy(d *carried.Surveyed) cell {
	var out cell
	for _, c := range d.Carriers {
		p := piece{text: cli.Count(len(c.Pods), "pod has", "pods have") + " the current version " + revision.Short(c.Version), pods: c.Pods}
		if !c.Current {
			p.class, p.text = "note", cli.Count(len(c.Pods), "pod has", "pods have")+" the older version "+revision.Short(c.Version)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		out = append(out, piece{class: "quiet", text: "no pod has it"})
	}
	if len(d.Without) > 0 {
		out = append(out, piece{class: "note", text: cli.Count(len(d.Without), "pod is", "pods are") + " older than it and without it", pods: d.Without})
	}
	if len(d.Missed) > 0 {
		out = append(out, piece{class: "fix", text: cli.Count(len(d.Missed), "pod was", "pods were") + " missed: the webhook was not called when it was created", pods: d.Missed})
	}
	if len(d.Deselected) > 0 {
		out = append(out, piece{class: "note", text: cli.Count(len(d.Deselected), "pod has", "pods have") + " it and would not be selected now", pods: d.Deselected})
	}
	return out
}

// whenItFails says what happens if a webhook or a policy fails, and what a policy's binding does.
func whenItFails(link lint.Link) string {
	parts := []string{link.FailurePolicy}
	if link.TimeoutSeconds > 0 {
		parts = append(parts, fmt.Sprintf("after %d s", link.TimeoutSeconds))
	}
	if link.Reinvoked {
		parts = append(parts, "reinvoked")
	}
	return strings.Join(append(parts, link.Actions...), ", ")
}

// counted says what the API server counted for a webhook or a policy.
func counted(c *calls.Counted, u *callmetrics.Usage) cell {
	switch {
	case c == nil:
		return cell{{class: "quiet", text: "unknown"}}
	case u == nil:
		return cell{{class: "quiet", text: "none"}}
	}
	out := cell{{text: fmt.Sprintf("%.0f: half within %s, 99 %% within %s", u.Calls, callmetrics.Duration(u.P50), callmetrics.Duration(u.P99))}}
	if u.Rejected > 0 {
		out = append(out, piece{text: fmt.Sprintf("%.0f refused", u.Rejected)})
	}
	if u.Failed > 0 || u.FailedOpen > 0 {
		out = append(out, piece{class: "fix", text: fmt.Sprintf("%.0f failed, %.0f failed open", u.Failed, u.FailedOpen)})
	}
	return out
}

// matrix are the conflicts between the objects that have any, in their order.
func matrix(s *carried.Survey) (columns []string, rows [][]cell) {
	columns = []string{"Object"}
	for _, i := range conflicting(s) {
		columns = append(columns, s.Defaults[i].Name)
		row := []cell{{{text: s.Defaults[i].Name, href: "#" + anchor(s.Defaults[i])}}}
		for _, j := range conflicting(s) {
			at := slices.IndexFunc(s.Conflicts, func(c carried.Conflict) bool { return c.A == min(i, j) && c.B == max(i, j) })
			if at < 0 {
				row = append(row, cell{{class: "quiet", text: "-"}})
			} else {
				row = append(row, cell{{class: "fix", text: shortList(s.Conflicts[at].Places, 2)}})
			}
		}
		rows = append(rows, row)
	}
	return columns, rows
}

// printable is the text of a piece without characters that could hide something.
func (p piece) printable() string { return manifest.Printable(p.text) }
