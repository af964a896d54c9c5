// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Printable escapes terminal control characters: names and messages may come from untrusted
// files. It preserves newlines.
func Printable(text string) string {
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

// Indent formats a JSON value for display. It reverses needless escapes: "a & b", not "a \u0026
// b".
func Indent(value jsontext.Value) (string, error) {
	out := value.Clone()
	if err := out.Indent(jsontext.WithIndent("  "), jsontext.PreserveRawStrings(false)); err != nil {
		return "", err
	}
	return string(out) + "\n", nil
}

// Note writes a line to the user, separate from the output.
func Note(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintln(out, Printable(fmt.Sprintf(format, args...)))
}
