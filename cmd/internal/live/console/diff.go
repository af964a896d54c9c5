// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"fmt"
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
	// removed and added report whether the lines are part of the change.
	removed, added bool
	origin         string
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
