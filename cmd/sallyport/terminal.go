// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

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
