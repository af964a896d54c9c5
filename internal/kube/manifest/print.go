// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// Printable escapes what is not printable: control characters, such as those that begin the escape
// sequences of a terminal, other line separators, and characters that change the direction of text. Names
// and messages may come from untrusted files or servers. It preserves newlines; see [Sprintf].
func Printable(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
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

// PrintableLine is [Printable] for a text that belongs into one line, such as a name: it escapes
// newlines too. What others write must not look like a line of this program.
func PrintableLine(text string) string {
	return strings.ReplaceAll(Printable(text), "\n", `\n`)
}

// Sprintf formats text for a terminal. Arguments are made printable, and all but their first lines are
// indented, so that nothing that others write looks like a line of this program. Newlines of the format
// stay.
func Sprintf(format string, args ...any) string {
	args = slices.Clone(args)
	for i, arg := range args {
		var text string
		switch arg := arg.(type) {
		case string:
			text = arg
		case error:
			text = arg.Error()
		case fmt.Stringer:
			text = arg.String()
		default:
			if reflect.ValueOf(arg).Kind() != reflect.String {
				continue
			}
			text = reflect.ValueOf(arg).String()
		}
		args[i] = strings.ReplaceAll(Printable(strings.TrimRight(text, "\n")), "\n", "\n    ")
	}
	return fmt.Sprintf(format, args...)
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
	_, _ = fmt.Fprintln(out, Sprintf(format, args...))
}
