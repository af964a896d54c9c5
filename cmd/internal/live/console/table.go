// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/a-h/templ"
)

// pageRows limits the rows of a table that are shown at once.
const pageRows = 50

// A view is a table as the address wants it: filtered by q, sorted by sort, and one page of it. Sort and page are
// NAME.VALUE with the name of the table, because a page may have several.
type view struct {
	label, name string
	columns     []column
	rows        [][]cell
	matching    int // rows of all pages
	all         int // with those that the filter hides
	page, pages int
}

// A column of a table. Sorted is ascending, descending or empty.
type column struct{ title, href, sorted string }

// lazyRows are rows that are made when they are needed: those of a page, or all of them to filter and sort.
type lazyRows struct {
	count int
	row   func(i int) []cell
}

func madeRows(rows [][]cell) lazyRows {
	return lazyRows{len(rows), func(i int) []cell { return rows[i] }}
}

// between makes the rows from one to before another.
func (r lazyRows) between(from, to int) [][]cell {
	out := make([][]cell, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, r.row(i))
	}
	return out
}

// view returns a table for the address of the visit.
func (v *visit) view(label string, columns []string, rows lazyRows) *view {
	t := &view{label: label, name: slug(label), all: rows.count}
	query := v.URL.Query()
	if query.Get("q") != "" && v.page.filter {
		var matching [][]cell
		for i := range rows.count {
			if row := rows.row(i); slices.ContainsFunc(row, func(c cell) bool { return matches(v, c.plain()) }) {
				matching = append(matching, row)
			}
		}
		rows = madeRows(matching)
	}
	by, _ := strings.CutPrefix(query.Get("sort"), t.name+".")
	sorted, descending := strings.CutPrefix(by, "-")
	for i, title := range columns {
		c := column{title: title}
		if v.Method == http.MethodGet && rows.count > 1 {
			next := slug(title)
			if slug(title) == sorted {
				c.sorted = "ascending"
				if descending {
					c.sorted = "descending"
				} else {
					next = "-" + next
				}
				all := rows.between(0, rows.count)
				slices.SortStableFunc(all, func(a, b []cell) int {
					if descending {
						a, b = b, a
					}
					return compareCells(a[i], b[i])
				})
				rows = madeRows(all)
			}
			c.href = v.address("sort", t.name+"."+next, "page", "")
		}
		t.columns = append(t.columns, c)
	}
	t.matching, t.pages = rows.count, max((rows.count+pageRows-1)/pageRows, 1)
	if of, ours := strings.CutPrefix(query.Get("page"), t.name+"."); ours {
		t.page, _ = strconv.Atoi(of) // 0 is the first too
	}
	t.page = min(max(t.page, 1), t.pages)
	t.rows = rows.between((t.page-1)*pageRows, min(t.page*pageRows, rows.count))
	return t
}

// matches reports whether a text has that of the filter.
func matches(v *visit, text string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(v.URL.Query().Get("q")))
}

// turn is the address of another page of the table.
func (t *view) turn(v *visit, page int) templ.SafeURL {
	return templ.SafeURL(v.address("page", t.name+"."+strconv.Itoa(page)))
}

// address returns the address of the visit with other parameters, pairs of key and value. An empty value removes one.
func (v *visit) address(pairs ...string) string {
	query := v.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if query.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			query.Del(pairs[i])
		}
	}
	return cmp.Or(v.page.path, "./") + "?" + query.Encode()
}

// slug is a name for addresses.
func slug(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			return unicode.ToLower(r)
		}
		return '-'
	}, text), "-")
}

// plain is the text of a cell.
func (c cell) plain() string {
	var out []string
	for _, p := range c {
		out = append(out, p.text)
	}
	return strings.Join(out, " ")
}

// compareCells compares numbers by value, and everything else as text.
func compareCells(a, b cell) int {
	x, y := a.plain(), b.plain()
	if len(a) > 0 && len(b) > 0 && a[0].key+b[0].key != "" {
		x, y = a[0].key, b[0].key
	}
	m, errM := strconv.ParseFloat(x, 64)
	n, errN := strconv.ParseFloat(y, 64)
	if errM == nil && errN == nil {
		return cmp.Compare(m, n)
	}
	return cmp.Compare(x, y)
}

// badge is a state in a word.
func badge(class, word string) piece { return piece{class: class, text: word, badge: true} }

// number is a cell with a number.
func number(n int) cell { return cell{{text: strconv.Itoa(n), class: "number"}} }
