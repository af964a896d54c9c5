// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

const markup = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

// pictures are one of each kind, with markup in every text and more elements than are drawn.
func pictures() map[string]string {
	many := make([]Station, 2*maxStations)
	nodes := make([]Node, 2*maxNodes)
	var edges []Edge
	for i := range many {
		many[i] = Station{Name: markup, Note: markup, Class: "ok", Reinvoked: i == 3, Origins: []Origin{{markup, i}}}
	}
	for i := range nodes {
		nodes[i] = Node{Text: markup, Class: "fix"}
		edges = append(edges, Edge{From: i, To: i})
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return map[string]string{
		"path":          Path(markup, []Stage{{Title: markup, Serial: true, Stations: many}, {Title: "empty"}}),
		"an empty path": Path("", nil),
		"map":           Map(markup, []string{markup, markup}, [][]Node{nodes, nodes}, [][]Edge{edges}),
		"an empty map":  Map("", nil, nil, nil),
		"parts":         Parts(markup, []Part{{markup, 3, "o1"}, {markup, 0, "o2"}, {markup, 100000, "ok"}}),
		"no parts":      Parts("", nil),
		"steps":         Steps(markup, []Step{{markup, 10, "done"}, {markup, 100, "later"}}),
		"histogram":     Histogram(markup, []Bin{{markup, 1, "ok"}, {">20", 123456, "fix"}, {"1", 0, ""}}),
		"no histogram":  Histogram("", nil),
		"heat":          Heat(markup, []string{markup}, []string{markup, "b", "c"}, [][]Cell{{{markup, 0}, {"1", 1}, {"", -1}}}),
		"timeline":      Timeline(markup, []string{markup}, []string{"o1"}, []Span{{now, "o1"}, {now, "o1"}, {now.Add(time.Hour), "o1"}}),
	}
}

// TestPicturesAreWellFormedAndHarmless checks that texts stay texts, and that nothing needs what the console's
// policy forbids.
func TestPicturesAreWellFormedAndHarmless(t *testing.T) {
	for name, picture := range pictures() {
		t.Run(name, func(t *testing.T) {
			decoder := xml.NewDecoder(strings.NewReader(picture))
			for {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatalf("%v in\n%s", err, picture)
				}
				element, ok := token.(xml.StartElement)
				if !ok {
					continue
				}
				if !slices.Contains([]string{"svg", "rect", "text", "title", "path"}, element.Name.Local) {
					t.Errorf("an element %s", element.Name.Local)
				}
				for _, a := range element.Attr {
					if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
						t.Errorf("an attribute %s", a.Name.Local)
					}
				}
			}
		})
	}
}

// TestPicturesStayWithinTheirSize checks that no rectangle begins outside of its picture, and that the number
// of elements is limited.
func TestPicturesStayWithinTheirSize(t *testing.T) {
	for name, picture := range pictures() {
		var width, height int
		_, size, _ := strings.Cut(picture, `" width="`)
		if _, err := fmt.Sscanf(`width="`+size, `width="%d" height="%d"`, &width, &height); err != nil {
			t.Fatal(err)
		}
		for _, rest := range strings.Split(picture, "<rect ")[1:] {
			var x, y, w, h int
			if _, err := fmt.Sscanf(rest, `x="%d" y="%d" width="%d" height="%d"`, &x, &y, &w, &h); err != nil {
				t.Fatalf("%s: %v: %s", name, err, rest)
			}
			if x < 0 || y < 0 || x+w > width || y+h > height {
				t.Errorf("%s: a rectangle at %d,%d of %d×%d in %d×%d", name, x, y, w, h, width, height)
			}
		}
		if len(picture) > 64<<10 {
			t.Errorf("%s has %d bytes", name, len(picture))
		}
	}
}

func TestLongNamesKeepTheirEnds(t *testing.T) {
	for _, tc := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"}, {"a-long-name-1", 7, "a-l…e-1"}, {"ünïcödé-x", 5, "ün…-x"}, {"abc", 0, "abc"},
	} {
		if got := fit(tc.text, tc.most); got != tc.want {
			t.Errorf("%q in %d: %q, want %q", tc.text, tc.most, got, tc.want)
		}
	}
}
