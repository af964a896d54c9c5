// SPDX-License-Identifier: Apache-2.0

// Package sidebyside lays the lines before and after a change out beside each other.
package sidebyside

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// maxLines limits the rows.
const maxLines = 4000

// MaxCharacters limits the bytes of a line.
const MaxCharacters = 500

// A Row has a line before and a line after a change, side by side.
type Row struct {
	Before, After string
	// From and To are line numbers, counted from 1. A row without such a line has 0.
	From, To int
	// Folded is the number of lines without a change that the row stands for.
	Folded int
	// Removed and Added report whether the lines are part of the change.
	Removed, Added bool
	Origin         string
}

// Number prints a line number, and nothing for 0.
func (r Row) Number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// unknownOrigin is said of changes that no PodDefault makes.
const unknownOrigin = "the API server or another webhook"

// Of returns the rows of a table, and how many it leaves out.
func Of(lines []review.Line) (rows []Row, more int) {
	removed := 0     // rows at the end with a line before only
	unknown := false // the row above has the unknown origin
	for i, line := range lines {
		text, origin := Shorten(line.Text), line.Source
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
			rows = append(rows, Row{Before: text, Removed: true, Origin: origin})
			removed++
		case udiff.Insert:
			if removed > 0 {
				beside := &rows[len(rows)-removed]
				beside.After, beside.Added, beside.Origin = text, true, cmp.Or(origin, beside.Origin)
				removed--
				continue
			}
			rows = append(rows, Row{After: text, Added: true, Origin: origin})
		default:
			rows = append(rows, Row{Before: text, After: text})
			removed = 0
		}
	}
	before, after := 0, 0
	for i := range rows {
		if r := &rows[i]; r.Before != "" || r.Removed || !r.Added {
			before++
			r.From = before
		}
		if r := &rows[i]; r.After != "" || r.Added || !r.Removed {
			after++
			r.To = after
		}
	}
	if len(rows) > maxLines {
		rows, more = rows[:maxLines], len(rows)-maxLines
	}
	return rows, more
}

// Shorten returns a text as it can be printed, cut after [MaxCharacters].
func Shorten(text string) string {
	if len(text) <= MaxCharacters {
		return manifest.Printable(text)
	}
	return fmt.Sprintf("%s… (%d bytes in all)", manifest.Printable(strings.ToValidUTF8(text[:MaxCharacters], "")), len(text))
}

// around is how many lines without a change are shown before and after one.
const around = 3

// Fold replaces lines that are far from a change. A page has all of them with lines=all in its address.
func Fold(rows []Row) []Row {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.Added || r.Removed {
			for j := max(i-around, 0); j < min(i+around+1, len(rows)); j++ {
				near[j] = true
			}
		}
	}
	var out []Row
	for i, r := range rows {
		switch {
		case near[i]:
			out = append(out, r)
		case len(out) > 0 && out[len(out)-1].Folded > 0:
			out[len(out)-1].Folded++
		default:
			out = append(out, Row{Folded: 1})
		}
	}
	return out
}

// Changes identifies the changed lines of an object.
func Changes(rows []Row) string {
	var out strings.Builder
	for _, r := range rows {
		if r.Added || r.Removed {
			fmt.Fprintf(&out, "%t %q %t %q %q\n", r.Removed, r.Before, r.Added, r.After, r.Origin)
		}
	}
	return out.String()
}
