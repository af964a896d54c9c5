// SPDX-License-Identifier: Apache-2.0

// Package draw draws pictures of admission as SVG: plain functions of their data, without scripts and
// without style attributes, which the console's policy forbids. Colors come from classes of its style
// sheet. A picture repeats what a table beside it has, and has a name for those who do not see it.
package draw

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Sizes in SVG units, which are pixels unless a picture is shrunk.
const (
	lineHeight = 16
	charWidth  = 7 // of the sans-serif font at 12 pixels, on average
)

// origins is the number of classes o0, o1, … that color origins.
const origins = 6

// OriginClass returns the class of an origin, counted from 0. Origins beyond the number of classes share them.
func OriginClass(i int) string { return "o" + strconv.Itoa(i%origins) }

// A canvas collects the elements of a picture.
type canvas struct {
	body          strings.Builder
	width, height int
}

// svg returns the picture. Label says what it shows.
func (c *canvas) svg(label string) string {
	return fmt.Sprintf(`<svg class="picture" role="img" aria-label="%s" width="%d" height="%d" viewBox="0 0 %d %d" xmlns="http://www.w3.org/2000/svg">%s</svg>`,
		escape(label), c.width, c.height, c.width, c.height, c.body.String())
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.body, format, args...) }

// text writes a line, with at most as many characters as fit into the width. Its whole is its title.
func (c *canvas) text(x, y, width int, class, text string) {
	shown := fit(text, width/charWidth)
	if shown != text {
		c.add(`<text x="%d" y="%d" class="%s">%s<title>%s</title></text>`, x, y, class, escape(shown), escape(text))
		return
	}
	c.add(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escape(text))
}

func (c *canvas) rect(x, y, width, height int, class string) {
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="%s"/>`, x, y, width, height, class)
}

// arrow draws a line from left to right with a head at its end.
func (c *canvas) arrow(x1, y, x2 int) {
	c.add(`<path class="edge" d="M%d %dH%dm-5 -4l5 4l-5 4"/>`, x1, y, x2)
}

// fit shortens a text to a number of characters in its middle, because names differ at their ends.
func fit(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit || limit < 3 {
		return text
	}
	runes := []rune(text)
	head := (limit - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(limit-1-head):])
}

func escape(text string) string { return html.EscapeString(manifest.PrintableLine(text)) }
