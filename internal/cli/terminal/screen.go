// SPDX-License-Identifier: Apache-2.0

// Package terminal prints text for people. On a terminal, text is colored, and lines and tables fit its width;
// in a pipe or a file it has neither colors nor line breaks of its own.
package terminal

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// A Screen is an output that knows what it can show.
type Screen struct {
	io.Writer
	// Width is the number of columns, and Height that of lines; 0 if they are not limited.
	Width, Height int
	Color         bool
	// InPlace overwrites what is on the screen, as far as it has a height.
	InPlace bool
}

// NewScreen returns the screen of an output, with the size of its terminal if it is one.
func NewScreen(out io.Writer, color bool) *Screen {
	width, height := Size(out)
	return &Screen{Writer: out, Width: width, Height: height, Color: color}
}

// descriptor is the method of an *os.File, and of what stands before one.
type descriptor interface{ Fd() uintptr }

// Is reports whether an output is a terminal that can move its cursor.
func Is(out io.Writer) bool {
	file, ok := out.(descriptor)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Size returns the columns and lines of a terminal; 0 for another output. COLUMNS overrides the columns.
func Size(out io.Writer) (width, height int) {
	file, ok := out.(descriptor)
	if !ok {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		width = columns
	}
	return width, height
}

// A Style is the sequence of numbers that selects it (ECMA-48, SGR).
type Style string

// The styles of text. Colors are of the terminal's palette, so that they suit its background.
const (
	Plain   Style = ""
	Heading Style = "1"
	Good    Style = "32"
	Warn    Style = "33"
	Bad     Style = "31"
	Note    Style = "36"
	Quiet   Style = "2"
)

// Of returns a text in the style.
func (s Style) Of(text string) Span { return Span{text, s} }

// Row returns texts in the style, as the cells of a table.
func (s Style) Row(texts ...string) (row []Span) {
	for _, text := range texts {
		row = append(row, s.Of(text))
	}
	return row
}

// A Span is a part of a line, in one style.
type Span struct {
	Text  string
	Style Style
}
