// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// driftStyles are the styles of pods in a state, if there are any.
var driftStyles = map[drift.State]terminal.Style{
	drift.Current: terminal.Good, drift.Outdated: terminal.Warn, drift.Missing: terminal.Warn, drift.Missed: terminal.Bad, drift.Surplus: terminal.Warn,
}

// PrintText prints tables: of objects, of drifted workloads, and of exemptions.
func (d *Drift) PrintText(out io.Writer) error {
	onlyHeadings := func(rows [][]terminal.Span) bool { return len(rows) == 1 }
	text := terminal.NewText(out)
	for i, rows := range slices.DeleteFunc([][][]terminal.Span{d.objectRows(), d.workloadRows(), d.exemptionRows()}, onlyHeadings) {
		if i > 0 {
			text.Line(0)
		}
		text.Table(3, rows...)
	}
	return text.Flush()
}

// plainRow is a row of texts that others may have written.
func plainRow(texts ...string) (row []terminal.Span) {
	for _, text := range texts {
		row = append(row, terminal.Plain.Of(manifest.PrintableLine(text)))
	}
	return row
}

func (d *Drift) objectRows() [][]terminal.Span {
	titles := []string{"PODDEFAULT", "REVISION"}
	for _, state := range drift.States() {
		titles = append(titles, strings.ToUpper(string(state)))
	}
	rows := [][]terminal.Span{terminal.Heading.Row(titles...)}
	for _, of := range d.PodDefaults {
		shown := cmp.Or(revision.Short(of.Revision), "-")
		if !of.Exists {
			shown = "deleted"
		}
		row := plainRow(of.Name, shown)
		for _, state := range drift.States() {
			style := terminal.Quiet
			if of.Pods[state] > 0 {
				style = driftStyles[state]
			}
			row = append(row, style.Of(strconv.Itoa(of.Pods[state])))
		}
		rows = append(rows, row)
	}
	return rows
}

func (d *Drift) workloadRows() [][]terminal.Span {
	rows := [][]terminal.Span{terminal.Heading.Row("NAMESPACE", "WORKLOAD", "PODS", "DIFFERENCE")}
	for i := range d.Workloads {
		of := &d.Workloads[i]
		style := terminal.Plain
		switch {
		case len(of.Missed) > 0:
			style = terminal.Bad
		case of.Drifted > 0:
			style = terminal.Warn
		}
		rows = append(rows, append(plainRow(of.Namespace, of.Title(), strconv.Itoa(of.Pods)), style.Of(manifest.PrintableLine(of.difference()))))
	}
	return rows
}

func (d *Drift) exemptionRows() [][]terminal.Span {
	rows := [][]terminal.Span{terminal.Heading.Row("NAMESPACE", "EXEMPTION", "WORKLOADS", "PODS", "UNTIL", "FROM", "REASON")}
	for _, e := range d.Exemptions {
		rows = append(rows, plainRow(e.Namespace, e.Name, strings.Join(e.Workloads, ","), strconv.Itoa(e.Pods), e.Until.Format(time.RFC3339), strings.Join(e.Objects, ","), e.Reason))
	}
	return rows
}

// difference describes what differs: "PodDefault a/b: 2 outdated, 1 missing".
func (w *DriftedWorkload) difference() string {
	var out []string
	for _, title := range slices.Sorted(maps.Keys(w.PodDefaults)) {
		var counts []string
		for _, state := range drift.States() {
			if n := w.PodDefaults[title][state]; n > 0 {
				counts = append(counts, strconv.Itoa(n)+" "+string(state))
			}
		}
		out = append(out, title+": "+strings.Join(counts, ", "))
	}
	if len(w.Missed) > 0 && w.Kind != "Pod" {
		const most = 5
		out = append(out, "missed: "+strings.Join(w.Missed[:min(len(w.Missed), most)], ", "))
		if more := len(w.Missed) - most; more > 0 {
			out[len(out)-1] += fmt.Sprintf(" and %d more", more)
		}
	}
	return strings.Join(out, "; ")
}
