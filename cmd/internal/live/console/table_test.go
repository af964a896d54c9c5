// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// viewOf returns the texts of the first column of a table for an address.
func viewOf(t *testing.T, target string) (names []string, shown *view) {
	t.Helper()
	v := &visit{Request: localRequest(http.MethodGet, target, nil), Options: unreachable(), page: page{path: "webhooks", filter: true}}
	rows := [][]cell{
		{text("b"), number(10), {{text: "2ms", key: "0.002"}}}, {text("a"), number(9), {{text: "1s", key: "1"}}}, {text("c<i>"), number(100), {{text: "30ms", key: "0.03"}}},
	}
	shown = v.view("Some Table", []string{"Name", "Pods", "Latency"}, madeRows(rows))
	for _, row := range shown.rows {
		names = append(names, row[0].plain())
	}
	return names, shown
}

func TestATableIsAsTheAddressWantsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"in its own order":          {"", []string{"b", "a", "c<i>"}},
		"by name":                   {"sort=some-table.name", []string{"a", "b", "c<i>"}},
		"by a number":               {"sort=some-table.pods", []string{"a", "b", "c<i>"}},
		"by a number, descending":   {"sort=some-table.-pods", []string{"c<i>", "b", "a"}},
		"by a duration":             {"sort=some-table.latency", []string{"b", "c<i>", "a"}},
		"another table's order":     {"sort=other.name", []string{"b", "a", "c<i>"}},
		"an unknown column":         {"sort=some-table.none", []string{"b", "a", "c<i>"}},
		"filtered, in any case":     {"q=C%3CI", []string{"c<i>"}},
		"filtered by any column":    {"q=1s", []string{"a"}},
		"nothing matches":           {"q=nothing", nil},
		"a page that is not there":  {"page=some-table.99", []string{"b", "a", "c<i>"}},
		"a page that is no number":  {"page=some-table.x", []string{"b", "a", "c<i>"}},
		"a page before the first":   {"page=some-table.-1", []string{"b", "a", "c<i>"}},
		"an address without sense":  {"sort=.&page=.&q=", []string{"b", "a", "c<i>"}},
		"filtered and sorted":       {"q=0&sort=some-table.-name", []string{"c<i>", "b"}},
		"filter and page elsewhere": {"q=b&page=other.2", []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := viewOf(t, "/webhooks?"+tc.query); !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestAHeadingTurnsTheOrderAndKeepsTheRest(t *testing.T) {
	_, shown := viewOf(t, "/webhooks?namespace=team-a&q=0&sort=some-table.pods&page=some-table.1")
	if got := shown.columns[1]; got.sorted != "ascending" || got.href != "webhooks?namespace=team-a&q=0&sort=some-table.-pods" {
		t.Errorf("%+v", got)
	}
	if got := shown.columns[0]; got.sorted != "" || got.href != "webhooks?namespace=team-a&q=0&sort=some-table.name" {
		t.Errorf("%+v", got)
	}
}

func TestALongTableHasPages(t *testing.T) {
	var rows [][]cell
	for i := range 2*pageRows + 1 {
		rows = append(rows, []cell{text(strconv.Itoa(i))})
	}
	for page, want := range map[int]string{1: "0", 2: "50", 3: "100"} {
		v := &visit{Request: localRequest(http.MethodGet, fmt.Sprintf("/pod?page=long.%d", page), nil), Options: unreachable()}
		shown := v.view("Long", []string{"Name"}, madeRows(rows))
		if shown.pages != 3 || shown.page != page || shown.rows[0][0].plain() != want {
			t.Errorf("page %d of %d begins with %q, want %q", shown.page, shown.pages, shown.rows[0][0].plain(), want)
		}
	}
}

func TestAddressesOfTheUserAreNoMarkup(t *testing.T) {
	for _, target := range []string{"/webhooks?q=%22%3E%3Cimg%3E", "/search?text=%22%3E%3Cimg%3E", "/pod?sort=%22%3E%3Cimg%3E&page=%22%3E%3Cimg%3E", "/?cluster=%22%3E%3Cimg%3E"} {
		if _, body := visitPage(t, unreachable(), localRequest(http.MethodGet, target, nil)); strings.Contains(body, "<img") {
			t.Errorf("%s:\n%s", target, body)
		}
	}
}
