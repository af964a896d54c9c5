// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

var colorChoices = []string{"auto", "always", "never"}

// useColor decides for a choice of colorChoices. NO_COLOR is respected
// (no-color.org).
func useColor(choice string, out io.Writer) bool {
	switch choice {
	case "always":
		return true
	case "never":
		return false
	}
	file, ok := out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// printable escapes what would make a terminal do something else than print:
// names and messages may come from anybody's files. Lines stay lines.
func printable(text string) string {
	control := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
	if strings.IndexFunc(text, control) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if control(r) {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
