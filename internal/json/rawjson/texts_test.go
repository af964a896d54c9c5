// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"slices"
	"testing"
)

func TestSkipArrayWithoutTexts(t *testing.T) {
	for _, tc := range []struct {
		json   string
		length int
		ok     bool
	}{
		{`[]`, 0, true},
		{` [ ] `, 0, true},
		{`[{}]`, 1, true},
		{`[1]`, 1, true},
		{`[[],[1,2],{"b":[3,4],"c":"x,y"}]`, 3, true},
		{`["b" , "aa", "\"a", "a\"", "]"]`, 5, true},
		{`[{"name":"text"}]`, 0, false},
		{`[{"a":1}]`, 0, false},
		{`[[["a"]]]`, 0, false},
		{`["a long string that comes before it","a"]`, 0, false},
		{`["\u0061"]`, 0, false},
		{`["\u0074\u0065\u0078\u0074"]`, 0, false},
		{`["\u0074\u0065\u0078\u0074\u0074"]`, 1, true},
		{`{"b":[]}`, 0, false},
		{`"b"`, 0, false},
		{``, 0, false},
		{`["b`, 0, false},
		{`["b\`, 0, false},
		{`[1`, 0, false},
	} {
		var texts Texts
		texts.Add("a")
		texts.Add("text")
		r := NewReader([]byte(tc.json))
		if length, ok := texts.SkipArray(&r); length != tc.length || ok != tc.ok {
			t.Errorf("%s: %d, %t; want %d, %t", tc.json, length, ok, tc.length, tc.ok)
		} else if left := r.Kind() != 0; ok == left && tc.json != "" {
			t.Errorf("%s: reports %t and is left at byte %d", tc.json, ok, r.pos)
		}
	}
	if err := Check([]byte(`["b"]`), 8, func(r *Reader) {
		if _, ok := new(Texts).SkipArray(r); ok {
			t.Error("what is to be checked was skipped")
		}
	}); err != nil {
		t.Error(err)
	}
}

// arrayWithout compares SkipArray with what encoding/json finds in valid data.
func arrayWithout(t *testing.T, data []byte, value any) {
	t.Helper()
	array, isArray := value.([]any)
	held := texts(nil, value)
	for _, look := range [][]string{{"a"}, {""}, {"b", "longer than most"}, held[:min(1, len(held))], held[len(held)-min(1, len(held)):]} {
		var of Texts
		for _, text := range look {
			of.Add(text)
		}
		want := isArray && !slices.ContainsFunc(held, of.Has)
		r := NewReader(data)
		length, ok := of.SkipArray(&r)
		if ok != want || ok && length != len(array) {
			t.Errorf("%q without %q: %d, %t; want %d, %t", data, look, length, ok, len(array), want)
		}
		if left := r.Kind() != 0; left == ok {
			t.Errorf("%q without %q: reports %t and is left at byte %d", data, look, ok, r.pos)
		}
	}
}

// texts appends the names and strings in a value.
func texts(found []string, value any) []string {
	switch value := value.(type) {
	case string:
		found = append(found, value)
	case []any:
		for _, element := range value {
			found = texts(found, element)
		}
	case map[string]any:
		for name, member := range value {
			found = texts(append(found, name), member)
		}
	}
	return found
}
