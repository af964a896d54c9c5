// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"slices"
	"strings"
	"testing"
)

// The examples of RFC 6901, section 5, and similar cases.
func TestPointer(t *testing.T) {
	for _, tc := range []struct {
		name    string
		tokens  []string
		pointer string
	}{
		{"no tokens name the whole document", nil, ""},
		{"members and elements", []string{"foo", "0"}, "/foo/0"},
		{"an empty name", []string{""}, "/"},
		{"empty names behind one another", []string{"", ""}, "//"},
		{"a slash is ~1", []string{"a/b"}, "/a~1b"},
		{"a tilde is ~0", []string{"m~n"}, "/m~0n"},
		{"what looks like an escape is escaped", []string{"~1", "~0", "~01"}, "/~01/~00/~001"},
		{"other characters stay", []string{"c%d", "e^f", "g|h", `i\j`, `k"l`, " ", "ä"}, `/c%d/e^f/g|h/i\j/k"l/ /ä`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Pointer(tc.tokens...); got != tc.pointer {
				t.Errorf("Pointer gives %q, want %q", got, tc.pointer)
			}
			got, err := SplitPointer(tc.pointer)
			if err != nil || !slices.Equal(got, tc.tokens) {
				t.Errorf("SplitPointer gives %q, %v; want %q", got, err, tc.tokens)
			}
		})
	}
}

func TestSplitPointerRefusesWhatIsNoPointer(t *testing.T) {
	for _, tc := range []struct{ name, pointer, want string }{
		{"no slash at the beginning", "a/b", "does not begin with a slash"},
		{"a fragment", "#/a", "does not begin with a slash"},
		{"a tilde at the end", "/a~", "must be followed by 0 or 1"},
		{"a tilde before a slash", "/~/a", "must be followed by 0 or 1"},
		{"a tilde before another digit", "/~2", "must be followed by 0 or 1"},
		{"a tilde before an escape", "/~~01", "must be followed by 0 or 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tokens, err := SplitPointer(tc.pointer)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v", tokens, err)
			}
		})
	}
}

// FuzzSplitPointer checks that splitting and joining a pointer, and joining and
// splitting tokens, give the original.
func FuzzSplitPointer(f *testing.F) {
	for _, seed := range []string{"", "/", "/a/b", "/~0~1/~01", "/~", "a", "//", "/\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if tokens, err := SplitPointer(s); err == nil && Pointer(tokens...) != s {
			t.Errorf("%q became %q", s, Pointer(tokens...))
		}
		tokens := []string{s, "", s}
		if got, err := SplitPointer(Pointer(tokens...)); err != nil || !slices.Equal(got, tokens) {
			t.Errorf("%q became %q, %v", tokens, got, err)
		}
	})
}
