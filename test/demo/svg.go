// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// sgr is an escape sequence that sets a style.
var sgr = regexp.MustCompile("\x1b\\[(\\d+)m")

// Sizes of the picture, in pixels. A character of a monospaced font is 0.6 of its size
// wide; browsers are told to make it so by textLength.
const (
	fontSize   = 13.0
	charWidth  = 0.6 * fontSize
	lineHeight = 18.0
	margin     = 16.0
)

// classes are names of styles in the picture.
var classes = map[string]string{bold: "b", dim: "d", red: "r", green: "g", yellow: "y", cyan: "c"}

// svg is a picture of a terminal in which a command has printed text with styles: text
// stays text, nothing is loaded, and colours follow the reader's light or dark scheme. The
// same text gives the same bytes.
func svg(command, text string) []byte {
	lines := append([]string{"$ " + command}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	columns := 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(sgr.ReplaceAllString(line, "")))
	}
	width, height := float64(columns)*charWidth+2*margin, float64(len(lines))*lineHeight+2*margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" role="img" aria-label="What %s prints">
<style>
text{font:%gpx ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}
.p{fill:#f6f8fa;stroke:#d1d9e0}.b{font-weight:600}.d{fill:#6e7781}.r{fill:#cf222e}.g{fill:#116329}.y{fill:#7d4e00}.c{fill:#0b5e8a}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.p{fill:#161b22;stroke:#3d444d}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#e3b341}.c{fill:#79c0ff}
}
</style>
<rect class="p" x="0.5" y="0.5" width="%.0f" height="%.0f" rx="8"/>
`, width, height, width, escaped(command), fontSize, width-1, height-1)
	for i, line := range lines {
		writeLine(&out, line, margin+float64(i)*lineHeight+fontSize)
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// writeLine places each run of one style at its column. Blanks between runs are not drawn.
func writeLine(out *bytes.Buffer, line string, y float64) {
	class, column := "", 0
	for line != "" {
		at := sgr.FindStringSubmatchIndex(line)
		run := line
		if at != nil {
			run = line[:at[0]]
		}
		if shown := strings.TrimLeft(run, " "); strings.TrimRight(shown, " ") != "" {
			from := column + len(run) - len(shown)
			shown = strings.TrimRight(shown, " ")
			fmt.Fprintf(out, `<text x="%.1f" y="%.0f" textLength="%.1f" lengthAdjust="spacingAndGlyphs"`,
				margin+float64(from)*charWidth, y, float64(utf8.RuneCountInString(shown))*charWidth)
			if class != "" {
				fmt.Fprintf(out, ` class="%s"`, class)
			}
			fmt.Fprintf(out, ">%s</text>\n", escaped(shown))
		}
		column += utf8.RuneCountInString(run)
		if at == nil {
			return
		}
		class = classes[line[at[2]:at[3]]] // none for the end of a style
		line = line[at[1]:]
	}
}

func escaped(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes everything
	return out.String()
}
