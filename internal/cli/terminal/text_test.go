// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// printed is what a screen gets.
func printed(t *testing.T, width int, color bool, add func(*Text)) string {
	t.Helper()
	var out strings.Builder
	text := NewText(&Screen{Writer: &out, Width: width, Color: color})
	add(text)
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLinesFitTheScreen(t *testing.T) {
	for name, c := range map[string]struct {
		width, hang int
		color       bool
		spans       []Span
		want        string
	}{
		"in a pipe, a line has any length":                  {0, 0, false, []Span{Plain.Of("  a long line of words"), Bad.Of(" in red")}, "  a long line of words in red\n"},
		"words that do not fit are continued":               {20, 0, false, []Span{Plain.Of("  a long line of several words")}, "  a long line of\n    several words\n"},
		"a line is continued below a column":                {20, 8, false, []Span{Plain.Of("  1  ok a long line of words")}, "  1  ok a long line\n        of words\n"},
		"a name is broken after a separator":                {20, 0, false, []Span{Plain.Of("a.rather.long.name.example.com")}, "a.rather.long.name.\n  example.com\n"},
		"a word is broken if there is no other place":       {20, 0, false, []Span{Plain.Of("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")}, "aaaaaaaaaaaaaaaaaaaa\n  aaaaaaaaaa\n"},
		"a screen that is too narrow breaks no lines":       {10, 8, false, []Span{Plain.Of("a line of words")}, "a line of words\n"},
		"newlines remain":                                   {20, 0, false, []Span{Plain.Of("a\n\n  b")}, "a\n\n  b\n"},
		"each part of a line has its color":                 {20, 0, true, []Span{Plain.Of("a "), Bad.Of("red line of words"), Plain.Of(" here")}, "a \x1b[31mred line of words\x1b[0m\n  here\n"},
		"a color ends with its line":                        {20, 0, true, []Span{Good.Of("a long line of several words")}, "\x1b[32ma long line of\x1b[0m\n  \x1b[32mseveral words\x1b[0m\n"},
		"sequences for the terminal are not for this one":   {0, 0, true, []Span{Plain.Of("a\x1b[2Jb\u202e")}, "a\ufffd[2Jb\ufffd\n"},
		"an empty line":                                     {20, 0, true, nil, "\n"},
		"text that is as wide as the screen is not changed": {20, 0, false, []Span{Plain.Of("12345678901234567890")}, "12345678901234567890\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printed(t, c.width, c.color, func(text *Text) { text.Line(c.hang, c.spans...) }); got != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestTablesFitTheScreen(t *testing.T) {
	rows := [][]Span{
		{Heading.Of("NAME"), Heading.Of("PODS"), Heading.Of("REASON")},
		{Plain.Of("deployment/web"), Plain.Of("2"), Bad.Of("it is older than the last change of it")},
		{Plain.Of("x"), Plain.Of(""), Plain.Of("")},
	}
	for name, c := range map[string]struct {
		width int
		color bool
		want  string
	}{
		"in a pipe": {0, false, "NAME             PODS   REASON\ndeployment/web   2      it is older than the last change of it\nx\n"},
		"on a narrow terminal": {45, false, "NAME            PODS  REASON\n" +
			"deployment/web  2     it is older than the\n" +
			"                      last change of it\nx\n"},
		"on a terminal that is too narrow": {10, false, "NAME          PODS  REASON\n" +
			"deployment/   2     it is older\n" +
			"  web               than the\n" +
			"                    last change\n" +
			"                    of it\nx\n"},
		"with colors": {0, true, "\x1b[1mNAME\x1b[0m             \x1b[1mPODS\x1b[0m   \x1b[1mREASON\x1b[0m\n" +
			"deployment/web   2      \x1b[31mit is older than the last change of it\x1b[0m\nx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printed(t, c.width, c.color, func(text *Text) { text.Table(3, rows...) }); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Nothing is lost, and no line is wider than the screen.
func TestBrokenLinesHaveAllWords(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		given := rapid.StringMatching(`([a-z][a-z /.]{0,80}\n){0,3}`).Draw(r, "text")
		hang := rapid.IntRange(0, 20).Draw(r, "hang")
		width := rapid.IntRange(max(hang, 2)+minColumn, 60).Draw(r, "width")
		without := func(text string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(text) }
		line := printed(t, width, false, func(text *Text) { text.Line(hang, Plain.Of(given)) })
		if without(line) != without(given) {
			r.Fatalf("%q is printed as %q", given, line)
		}
		for one := range strings.Lines(line) {
			if n := utf8.RuneCountInString(strings.TrimRight(one, "\n")); n > width {
				r.Errorf("%q has %d columns of %d", one, n, width)
			}
		}
		cell := strings.ReplaceAll(given, "\n", "")
		table := printed(t, width, false, func(text *Text) { text.Table(2, []Span{Plain.Of(cell), Plain.Of("x")}) })
		if len(without(table)) != len(without(cell))+1 {
			r.Fatalf("%q is printed as %q", cell, table)
		}
	})
}

func TestAScreenIsOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		height int
		want   string
	}{
		"what was right of a line and below is cleared": {10, "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\nd\x1b[K\n\x1b[J"},
		"the top stays, on a screen that is too low":    {4, "\x1b[Ha\x1b[K\nb\x1b[K\n2 more lines: enlarge the terminal to see them\x1b[K\n\x1b[J"},
		"in a pipe, texts follow each other":            {0, "a\nb\nc\nd\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			text := NewText(&Screen{Writer: &out, Height: c.height, InPlace: true})
			text.Line(0, Plain.Of("a\nb\nc\nd"))
			if err := text.Flush(); err != nil || out.String() != c.want {
				t.Errorf("got %q, %v, want %q", out.String(), err, c.want)
			}
		})
	}
}

func TestOutputsThatAreNoTerminals(t *testing.T) {
	t.Setenv("COLUMNS", "20")
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for _, out := range []interface {
		Write([]byte) (int, error)
	}{file, &strings.Builder{}} {
		if screen := NewScreen(out, false); Is(out) || screen.Width != 0 || screen.Height != 0 {
			t.Errorf("%T is a terminal: %+v", out, screen)
		}
	}
}
