// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// minColumn is the width below which no column of a table and no continued line is narrowed.
const minColumn = 12

// A Text is written to a screen at once. What is not printable is replaced: terminals obey it.
type Text struct {
	screen Screen
	out    strings.Builder
}

// NewText returns an empty text. An output other than a [Screen] has no colors and any width.
func NewText(out io.Writer) *Text {
	if screen, ok := out.(*Screen); ok {
		return &Text{screen: *screen}
	}
	return &Text{screen: Screen{Writer: out}}
}

// Flush writes the text.
func (t *Text) Flush() error {
	text := t.out.String()
	if t.screen.InPlace && t.screen.Height > 0 {
		text = inPlace(text, t.screen.Height)
	}
	_, err := io.WriteString(t.screen.Writer, text)
	t.out.Reset()
	return err
}

// inPlace returns a text that overwrites the screen from its top, without clearing it first, which would flicker. What is
// below the last line of the screen is left out: the lines at its top would be lost otherwise.
func inPlace(text string, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := max(height-1, 1); len(lines) > most { // the cursor is on the last one
		left := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("%d more lines: enlarge the terminal to see them", left))
	}
	const home, clearRight, clearBelow = "\x1b[H", "\x1b[K\n", "\x1b[J"
	return home + strings.Join(lines, clearRight) + clearRight + clearBelow
}

// Line adds a line, or several if the spans contain newlines. Lines that are wider than the screen are continued below
// the column hang; 0 is two columns right of where the line begins.
func (t *Text) Line(hang int, spans ...Span) {
	line := letters(spans...)
	for {
		end := line.index('\n')
		t.wrapped(hang, line[:end])
		if end == len(line) {
			return
		}
		line = line[end+1:]
	}
}

// wrapped adds a line without newlines.
func (t *Text) wrapped(hang int, line styled) {
	indent := 0
	for indent < len(line) && line[indent].char == ' ' {
		indent++
	}
	if hang == 0 {
		hang = indent + 2
	}
	width := t.screen.Width
	if width < hang+minColumn {
		width = 0
	}
	for i, part := range line.broken(width, hang) {
		if i > 0 {
			t.out.WriteString(strings.Repeat(" ", hang))
		}
		t.write(part)
		t.out.WriteByte('\n')
	}
}

// Table adds rows whose cells are aligned, gap columns apart. If they are wider than the screen, the widest columns are
// narrowed, and their cells continued on further lines.
func (t *Text) Table(gap int, rows ...[]Span) {
	var widths []int
	cells := make([][]styled, len(rows))
	for i, row := range rows {
		for j, span := range row {
			cell := letters(span)
			cells[i] = append(cells[i], cell)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], len(cell))
		}
	}
	gap = t.narrow(gap, widths)
	for _, row := range cells {
		t.row(gap, widths, row)
	}
}

// narrow makes the gap and then the widest columns narrower, until the table fits the screen. It returns the gap.
func (t *Text) narrow(gap int, widths []int) int {
	columns, total := len(widths)-1, 0
	for _, width := range widths {
		total += width
	}
	if t.screen.Width > 0 && total+gap*columns > t.screen.Width {
		gap = min(gap, 2)
	}
	for total += gap * columns; t.screen.Width > 0 && total > t.screen.Width; total-- {
		widest := 0
		for i, width := range widths {
			if width > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	return gap
}

func (t *Text) row(gap int, widths []int, cells []styled) {
	lines := 1
	parts := make([][]styled, len(cells))
	const hang = 2 // of the first column, so that no continued line looks like a row
	for i, cell := range cells {
		parts[i] = cell.broken(widths[i], hang*(1-min(i, 1)))
		lines = max(lines, len(parts[i]))
	}
	for line := range lines {
		missing := 0 // columns before the next text, so that no line ends in spaces
		for i, part := range parts {
			indent := 0
			if line > 0 && i == 0 {
				indent = hang
			}
			if line < len(part) && len(part[line]) > 0 {
				t.out.WriteString(strings.Repeat(" ", missing+indent))
				t.write(part[line])
				missing = -indent - len(part[line])
			}
			missing += widths[i] + gap
		}
		t.out.WriteByte('\n')
	}
}

// write adds text, with sequences for its styles.
func (t *Text) write(text styled) {
	style := Plain
	change := func(to Style) {
		if t.screen.Color && style != to {
			if style != Plain {
				t.out.WriteString("\x1b[0m")
			}
			if to != Plain {
				t.out.WriteString("\x1b[" + string(to) + "m")
			}
			style = to
		}
	}
	for _, l := range text {
		change(l.style)
		t.out.WriteRune(l.char)
	}
	change(Plain)
}

// styled is text with the style of each character.
type styled []struct {
	char  rune
	style Style
}

// printable replaces a character that a terminal would obey.
func printable(char rune) rune {
	if !unicode.IsPrint(char) {
		return unicode.ReplacementChar
	}
	return char
}

func letters(spans ...Span) (out styled) {
	for _, span := range spans {
		for _, char := range span.Text {
			if char != '\n' {
				char = printable(char)
			}
			out = append(out, struct {
				char  rune
				style Style
			}{char, span.Style})
		}
	}
	return out
}

// index is where a character is first; the length of the text if it is nowhere.
func (s styled) index(char rune) int {
	for i, l := range s {
		if l.char == char {
			return i
		}
	}
	return len(s)
}

// broken returns the lines of a text, the first of at most width characters and the others of hang less; of any for 0.
func (s styled) broken(width, hang int) (lines []styled) {
	for width > 0 && len(s) > width {
		end, next := s.breakAt(width)
		lines, s = append(lines, s[:end]), s[next:]
		width -= hang
		hang = 0
	}
	return append(lines, s)
}

// breakAt is where a line of at most width characters ends, and where the next one begins: at a space, after a
// character that separates parts of a name, or in a word.
func (s styled) breakAt(width int) (end, next int) {
	begin := 0
	for begin < len(s) && s[begin].char == ' ' {
		begin++
	}
	for i := width; i > begin; i-- {
		if s[i].char == ' ' {
			next = i
			for next < len(s) && s[next].char == ' ' {
				next++
			}
			for end = i; s[end-1].char == ' '; end-- {
			}
			return end, next
		}
	}
	for i := width; i > max(begin, width/2); i-- {
		switch s[i-1].char {
		case '/', ',', '.', '-', '_', '=', ':':
			return i, i
		}
	}
	return width, width
}
