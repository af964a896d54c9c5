// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/sidebyside"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
)

// An admitted is a pod as it was sent and as it is stored, or would be.
type admitted struct {
	*injection.Explanation
	rows []sidebyside.Row
	more int // rows that are left out
	// equals are further pods with the same changes, by title.
	equals []string
}

func (v *visit) admitted(e *injection.Explanation) (*admitted, error) {
	lines, err := e.Lines(v.showsValues())
	if err != nil {
		return nil, err
	}
	rows, more, err := v.sideBySide(lines)
	return &admitted{Explanation: e, rows: rows, more: more}, err
}

// sideBySide is [sidebyside.Of] for a page, whose rows have at most maxAnswer bytes together.
func (v *visit) sideBySide(lines []review.Line) (rows []sidebyside.Row, more int, err error) {
	rows, more = sidebyside.Of(lines)
	for _, r := range rows {
		v.rows += len(r.Before) + len(r.After)
	}
	if v.rows > maxAnswer {
		return nil, 0, explain.ErrTooLarge
	}
	return rows, more, nil
}

// shownRows are the rows of a change as the address wants them.
func (v *visit) shownRows(rows []sidebyside.Row) []sidebyside.Row {
	if v.FormValue("lines") == "all" {
		return rows
	}
	return sidebyside.Fold(rows)
}

// groupPods puts pods together that differ in nothing that the page shows.
func groupPods(pods []*admitted) []*admitted {
	var out []*admitted
	first := map[string]*admitted{}
	for _, pod := range pods {
		key := fmt.Sprintf("%s\x00%s\x00%s\x00%v\x00%v\x00%v\x00%v", sidebyside.Changes(pod.rows), pod.Denied, pod.Unknown, pod.Warnings, pod.Matching, pod.NotMatching, pod.Carried)
		if same := first[key]; same != nil {
			same.equals = append(same.equals, pod.Object)
			continue
		}
		first[key] = pod
		out = append(out, pod)
	}
	return out
}

// groupChanges puts workloads together whose pods change in the same way.
func groupChanges(changes []changed) []changed {
	var out []changed
	first := map[string]int{}
	for _, c := range changes {
		key := c.Verdict() + "\x00" + sidebyside.Changes(c.rows)
		if i, known := first[key]; known && len(c.rows) > 0 {
			out[i].equals = append(out[i].equals, c.Workload.Title())
			continue
		}
		first[key] = len(out)
		out = append(out, c)
	}
	return out
}

// noColor is for changes whose origins are not told apart.
func noColor(string) string { return "" }
