// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"testing"
)

type kind string

func TestWhatOthersWriteLooksLikeNoLineOfThisProgram(t *testing.T) {
	for name, tc := range map[string]struct {
		format string
		args   []any
		want   string
	}{
		"plain text":                      {"%s: %d é 漢", []any{"a", 1}, "a: 1 é 漢"},
		"a newline":                       {"\nwarning: %s.", []any{"a\nok: b"}, "\nwarning: a\n    ok: b."},
		"newlines at the end":             {"%s.", []any{"a\n\n"}, "a."},
		"a carriage return":               {"%s", []any{"a\rb"}, `a\rb`},
		"other line separators":           {"%s", []any{"a\u0085b\u2028c\u2029d\vd\fd"}, `a\u0085b\u2028c\u2029d\vd\fd`},
		"an escape sequence":              {"%s", []any{"\x1b[31mred\u009b0m\a\b\x7f"}, `\x1b[31mred\u009b0m\a\b\x7f`},
		"another direction":               {"%s", []any{"a\u202eb\u2066c\u200fd"}, `a\u202eb\u2066c\u200fd`},
		"an invisible character":          {"%s", []any{"a\u200bb\ufeffc"}, `a\u200bb\ufeffc`},
		"not UTF-8":                       {"%s", []any{"a\xffb"}, "a\ufffdb"},
		"an error":                        {"%v", []any{errors.New("a\nb\x1b")}, "a\n    b" + `\x1b`},
		"a type of text":                  {"%s", []any{kind("a\nb")}, "a\n    b"},
		"a quoted text, which escapes it": {"%q", []any{"ab"}, `"ab"`},
	} {
		args := append([]any{}, tc.args...)
		if got := Sprintf(tc.format, tc.args...); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		for i := range args {
			if args[i] != tc.args[i] {
				t.Errorf("%s: the arguments were changed", name)
			}
		}
	}
	if got := PrintableLine("a\nb\u2028"); got != `a\nb\u2028` {
		t.Errorf("a line: %q", got)
	}
}
