// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
)

// findDrift compares the pods of the chosen namespace, or of all, with PodDefaults. It is nil if the user may not
// read them, or if the cluster has no PodDefaults.
func (v *visit) findDrift(ctx context.Context) (*carried.Drift, error) {
	found, err := inAll(v, "compare pods of all namespaces; those of "+v.cluster.Namespace+" are shown", func(namespace string) (*carried.Drift, error) {
		return carried.FindDrift(ctx, v.cluster, namespace, nil, &v.notes)
	})
	if errors.Is(err, injection.ErrNoPodDefaults) {
		v.notes.WriteString("note: " + err.Error() + "\n")
		return nil, nil
	}
	if err = v.hide("compare pods of the namespace "+v.cluster.Namespace+" with PodDefaults", err); err != nil {
		return nil, err
	}
	return found, nil
}

// driftStates are the states of pods that differ, as columns.
var driftStates = []struct {
	state drift.State
	word  string
}{
	{drift.Outdated, "older revision"}, {drift.Missing, "created before"}, {drift.Missed, "missed"}, {drift.Surplus, "not selected"}, {drift.Unknown, "unknown"},
}

// showDrift shows pods that differ from what they would get now, by namespace and by workload.
func showDrift(ctx context.Context, v *visit) (templ.Component, error) {
	found, err := v.findDrift(ctx)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nothing("Nothing could be compared. Choose one of your namespaces above."), nil
	}
	v.data = found
	return blocks(v, []block{heatOf(v, found), driftedOf(v, found)}), nil
}

// heatOf is the drift by namespace: how many pods of its drifted workloads are in each state.
func heatOf(v *visit, found *carried.Drift) block {
	type counts struct {
		pods  int
		state map[drift.State]int
	}
	by := map[string]*counts{}
	for i := range found.Workloads {
		w := &found.Workloads[i]
		c := by[w.Namespace]
		if c == nil {
			c = &counts{state: map[drift.State]int{}}
			by[w.Namespace] = c
		}
		c.pods += w.Pods
		for state, n := range worst(w) {
			c.state[state] += n
		}
	}
	b := block{
		heading: "By namespace", columns: []string{"Namespace"},
		text:  strconv.Itoa(found.Pods) + " running pods were compared with the PodDefaults of now. A pod gets PodDefaults when it is created, and never later.",
		empty: "Every running pod is as it would be now.",
	}
	var columns []string
	for _, s := range driftStates {
		columns = append(columns, s.word)
	}
	b.columns = append(b.columns, columns...)
	namespaces := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(by[b].pods, by[a].pods), cmp.Compare(a, b)) })
	const most = 25 // in the picture
	var rows []string
	var cells [][]draw.Cell
	for _, namespace := range namespaces {
		row := []cell{{{text: namespace, href: v.link("drift", "namespace", namespace)}}}
		var line []draw.Cell
		for _, s := range driftStates {
			n := by[namespace].state[s.state]
			row = append(row, number(n))
			line = append(line, draw.Cell{Text: strconv.Itoa(n), Share: min(float64(n)/float64(max(by[namespace].pods, 1)), 1)})
		}
		b.rows = append(b.rows, row)
		if rows = append(rows, namespace); len(cells) < most {
			cells = append(cells, line)
		}
	}
	if len(rows) > 0 {
		b.picture = draw.Heat("Pods that differ, by namespace and state; the darker, the larger their share of the pods of workloads that differ", rows[:len(cells)], columns, cells)
	}
	return b
}

// worst counts the pods of a workload in a state, by the PodDefault with most of them.
func worst(w *carried.DriftedWorkload) map[drift.State]int {
	out := map[drift.State]int{}
	for _, states := range w.PodDefaults {
		for state, n := range states {
			out[state] = max(out[state], n)
		}
	}
	return out
}

// driftedOf are the workloads with pods that differ, with the command that replaces them.
func driftedOf(v *visit, found *carried.Drift) block {
	return block{
		heading: "Workloads", columns: []string{"Workload", "Pods", "Differ", "Why", "To replace the pods"},
		lazy: lazyRows{len(found.Workloads), func(i int) []cell { return driftedRow(v, &found.Workloads[i]) }},
	}
}

func driftedRow(v *visit, w *carried.DriftedWorkload) []cell {
	var why, restart cell
	for _, title := range slices.Sorted(maps.Keys(w.PodDefaults)) {
		var parts []string
		class := "note"
		for _, s := range driftStates {
			if n := w.PodDefaults[title][s.state]; n > 0 {
				parts = append(parts, strconv.Itoa(n)+" "+s.word)
				if s.state == drift.Missed {
					class = "fix"
				}
			}
		}
		why = append(why, piece{class: class, text: title + ": " + strings.Join(parts, ", ")})
	}
	for _, of := range w.Restart {
		restart = append(restart, piece{text: "kubectl --namespace " + w.Namespace + " rollout restart " + of, copied: true})
	}
	title := piece{text: w.Namespace + "/" + w.Title()}
	if knownKind(w.Kind) {
		title.href = v.link("pod", "namespace", w.Namespace, "type", strings.ToLower(w.Kind), "name", w.Name)
	}
	return []cell{{title}, number(w.Pods), number(w.Drifted), why, restart}
}
