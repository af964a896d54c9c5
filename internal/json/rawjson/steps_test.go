// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzSteps checks that reading step by step finds what reading with functions does, in any
// input, and never reads past the end.
func FuzzSteps(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `{"a`, `{"a":`, `{"a":1,`, `{,}`, `[1`, `[1 2]`, `{}`, `[]`, ` { } `, ` [ ] `, ` { "a" : [ 1 , { } ] , "b" : "c" } `,
		`{"a":{"b":[1,2,{"c":"\"\\"}],"escaped\n":[]},"d":null}`, `[[[[]]],"long enough for eight bytes","\ud83d\ude00"]`, `{"a" 1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add(recorded(f, "notebook.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		exact := bytes.Clone(data)
		exact = exact[:len(exact):len(exact)] // reading past the end panics
		steps := NewSteps(exact)
		got := readSteps(&steps)
		if !json.Valid(data) {
			return
		}
		r := NewReader(exact)
		if want := read(&r, 0); !reflect.DeepEqual(got, want) {
			t.Errorf("%q\n got %#v\nwant %#v", data, got, want)
		}
		if steps.Kind() != 0 {
			t.Errorf("%q: %d bytes are left", data, len(data)-steps.pos)
		}
	})
}

// readSteps is [read] step by step.
func readSteps(r *Steps) any {
	switch r.Kind() {
	case '{':
		out := map[string]any{}
		for name, ok := r.Name(); ok; name, ok = r.Name() {
			out[string(name)] = readSteps(r)
		}
		return out
	case '[':
		out := []any{}
		for r.Element() {
			out = append(out, readSteps(r))
		}
		return out
	case '"':
		return string(r.Text())
	}
	return read(&r.Reader, 0)
}
