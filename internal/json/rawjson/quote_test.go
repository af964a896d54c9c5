// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestAppendStringReplacesWhatIsNotUTF8(t *testing.T) {
	if got := string(AppendString([]byte("x"), "a\xffb")); got != "x\"a\ufffdb\"" {
		t.Errorf("got %q", got)
	}
}

// FuzzAppendString compares with a general encoder.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "name", "/spec/volumes/-", `a"b`, `a\b`, "\x00\x1f\x7f", "<a>&", "é\u2028", "12345678\"", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, _ := jsontext.AppendQuote([]byte("x"), s)
		if got := AppendString([]byte("x"), s); string(got) != string(want) {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
		if got := AppendString([]byte("x"), []byte(s)); string(got) != string(want) {
			t.Errorf("%q in bytes: got %s, want %s", s, got, want)
		}
	})
}
