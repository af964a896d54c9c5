// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen is where the person looks. Colours are used on a terminal only, and not
// if NO_COLOR is set (https://no-color.org).
type screen struct {
	out     io.Writer
	colours bool
	live    bool // a line may be replaced by another
}

// sgr is an escape sequence that sets a style.
var sgr = regexp.MustCompile("\x1b\\[\\d+m")

func newScreen(out *os.File) *screen {
	terminal := term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
	return &screen{out: out, colours: terminal && os.Getenv("NO_COLOR") == "", live: terminal}
}

// The styles are SGR parameters.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s *screen) style(style, text string) string {
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s *screen) println(parts ...string) { s.print(strings.Join(parts, "") + "\n") }

func (s *screen) print(text string) {
	if !s.colours {
		text = sgr.ReplaceAllString(text, "")
	}
	_, _ = io.WriteString(s.out, text)
}

func (s *screen) title(text string) { s.println("\n", s.style(bold, text)) }

// doing shows what is under way until done or failed replaces it.
func (s *screen) doing(what string) {
	if s.live {
		_, _ = fmt.Fprintf(s.out, "  … %s", what)
	}
}

func (s *screen) done(what, detail string, took time.Duration) {
	s.finish(s.style(green, "✓"), what, detail, took)
}

func (s *screen) failed(what string, took time.Duration) {
	s.finish(s.style(red, "✗"), what, "", took)
}

func (s *screen) finish(sign, what, detail string, took time.Duration) {
	if s.live {
		_, _ = fmt.Fprint(s.out, "\r\x1b[K")
	}
	s.print(fmt.Sprintf("  %s %-13s %-58s %s\n", sign, what, detail, s.style(dim, seconds(took))))
}

// check shows one thing that was verified.
func (s *screen) check(ok bool, what string) {
	sign := s.style(green, "✓")
	if !ok {
		sign = s.style(red, "✗")
	}
	s.println("  ", sign, " ", what)
}

// around is how many lines of the pod as sent are shown around a change.
const around = 2

// pod shows a comparison as a unified diff from the pod as sent to the pod as
// stored. Lines that the API server fills in by itself are counted, not shown.
func (s *screen) pod(lines []line) {
	shown := visible(lines)
	for i := 0; i < len(lines); {
		l := lines[i]
		if shown[i] {
			s.line(l)
			i++
			continue
		}
		filled, column := 0, l.column
		for ; i < len(lines) && !shown[i]; i++ {
			column = min(column, lines[i].column)
			if lines[i].by == apiServer {
				filled++
			}
		}
		note := ""
		if filled > 0 {
			note = " " + count(filled, "line") + " that the API server fills in"
		}
		s.println(s.style(dim, "  "+strings.Repeat(" ", column)+"⋮"+note))
	}
}

func (s *screen) line(l line) {
	text := strings.Repeat(" ", l.column) + l.text
	if l.by == sender {
		s.println("  ", text)
		return
	}
	sign, colour := "+ ", green
	if l.removed {
		sign, colour = "- ", red
	}
	if l.by == apiServer {
		colour = dim
	}
	note := ""
	if len(l.sources) > 0 {
		note = s.style(cyan, "  ← "+strings.Join(l.sources, ", "))
	}
	s.println(s.style(colour, sign+text), note)
}

// visible marks the changes of the webhook, what is around them, and the lines
// that say where in the pod one is.
func visible(lines []line) []bool {
	shown := make([]bool, len(lines))
	for i, l := range lines {
		if l.by != webhook {
			continue
		}
		shown[i] = true
		for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
			shown[j] = shown[j] || lines[j].by == sender && !opens(lines, j)
		}
	}
	for i := range lines {
		if !shown[i] {
			continue
		}
		column := lines[i].column
		for j := i - 1; j >= 0; j-- {
			if lines[j].column < column {
				shown[j], column = true, lines[j].column
			}
		}
	}
	return shown
}

// opens tells whether a line is the head of those behind it.
func opens(lines []line, i int) bool {
	return strings.HasSuffix(lines[i].text, ":") && i+1 < len(lines) && lines[i+1].column > lines[i].column
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// milliseconds shows a short time.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
