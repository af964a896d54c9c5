// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// An admitted is a pod as it was sent and as it is stored, or would be.
type admitted struct {
	*injection.Explanation
	rows []row
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

// sideBySide is the function of this name for a page, whose rows have at most maxAnswer bytes together.
func (v *visit) sideBySide(lines []review.Line) (rows []row, more int, err error) {
	rows, more = sideBySide(lines)
	for _, r := range rows {
		v.rows += len(r.before) + len(r.after)
	}
	if v.rows > maxAnswer {
		return nil, 0, errTooLarge
	}
	return rows, more, nil
}

// A row has a line before and a line after a change, side by side.
type row struct {
	before, after string
	// from and to are the numbers of the lines, from 1; 0 if there is none.
	from, to int
	// folded is the number of lines without a change that the row stands for.
	folded int
	// removed and added report whether the lines are part of the change.
	removed, added bool
	origin         string
}

// number is the number of a line; empty if there is none.
func (r row) number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// unknownOrigin is said of changes that no PodDefault makes.
const unknownOrigin = "the API server or another webhook"

// sideBySide returns the rows of a table, and how many it leaves out.
func sideBySide(lines []review.Line) (rows []row, more int) {
	removed := 0     // rows at the end with a line before only
	unknown := false // the row above has the unknown origin
	for i, line := range lines {
		text, origin := shorten(line.Text), line.Source
		is := line.Kind != udiff.Equal && line.Cause == ""
		if is && i+1 < len(lines) && lines[i+1].Source != "" && lines[i+1].Kind == line.Kind {
			is = false // it only holds what follows
		}
		if is && !unknown {
			origin = unknownOrigin
		}
		unknown = is
		switch line.Kind {
		case udiff.Delete:
			rows = append(rows, row{before: text, removed: true, origin: origin})
			removed++
		case udiff.Insert:
			if removed > 0 {
				beside := &rows[len(rows)-removed]
				beside.after, beside.added, beside.origin = text, true, cmp.Or(origin, beside.origin)
				removed--
				continue
			}
			rows = append(rows, row{after: text, added: true, origin: origin})
		default:
			rows = append(rows, row{before: text, after: text})
			removed = 0
		}
	}
	before, after := 0, 0
	for i := range rows {
		if r := &rows[i]; r.before != "" || r.removed || !r.added {
			before++
			r.from = before
		}
		if r := &rows[i]; r.after != "" || r.added || !r.removed {
			after++
			r.to = after
		}
	}
	if len(rows) > maxLines {
		rows, more = rows[:maxLines], len(rows)-maxLines
	}
	return rows, more
}

func shorten(text string) string {
	if len(text) <= maxCharacters {
		return manifest.Printable(text)
	}
	return fmt.Sprintf("%s… (%d bytes in all)", manifest.Printable(strings.ToValidUTF8(text[:maxCharacters], "")), len(text))
}

// around is how many lines without a change are shown before and after one.
const around = 3

// fold replaces lines that are far from a change. A page has all of them with lines=all in its address.
func fold(rows []row) []row {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.added || r.removed {
			for j := max(i-around, 0); j < min(i+around+1, len(rows)); j++ {
				near[j] = true
			}
		}
	}
	var out []row
	for i, r := range rows {
		switch {
		case near[i]:
			out = append(out, r)
		case len(out) > 0 && out[len(out)-1].folded > 0:
			out[len(out)-1].folded++
		default:
			out = append(out, row{folded: 1})
		}
	}
	return out
}

// shownRows are the rows of a change as the address wants them.
func (v *visit) shownRows(rows []row) []row {
	if v.FormValue("lines") == "all" {
		return rows
	}
	return fold(rows)
}

// changesOf identifies the changed lines of an object.
func changesOf(rows []row) string {
	var out strings.Builder
	for _, r := range rows {
		if r.added || r.removed {
			fmt.Fprintf(&out, "%t %q %t %q %q\n", r.removed, r.before, r.added, r.after, r.origin)
		}
	}
	return out.String()
}

// groupPods puts pods together that differ in nothing that the page shows.
func groupPods(pods []*admitted) []*admitted {
	var out []*admitted
	first := map[string]*admitted{}
	for _, pod := range pods {
		key := fmt.Sprintf("%s\x00%s\x00%s\x00%v\x00%v\x00%v\x00%v", changesOf(pod.rows), pod.Denied, pod.Unknown, pod.Warnings, pod.Matching, pod.NotMatching, pod.Carried)
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
		key := c.Verdict() + "\x00" + changesOf(c.rows)
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
