// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"reflect"
	"testing"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
)

func TestAPatchThatMakesTheLibraryPanicIsAnError(t *testing.T) {
	for _, patch := range []string{
		`[{"op":"test","path":""}]`,
		`[{"op":"test","path":"/a","value":[null]}]`,
	} {
		if got, err := canonical([]byte(`{"a":[null]}`), []byte(patch)); err == nil {
			t.Errorf("%s: %s, no error", patch, got)
		}
	}
}

// FuzzCanonical checks that the canonical patch has the same result as the given one.
func FuzzCanonical(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":[1,2,3],"b":{"c":1}}`, `[{"op":"remove","path":"/a/0"},{"op":"add","path":"/a/-","value":4},{"op":"replace","path":"/b/c","value":null}]`},
		{`{"a":{"x":9007199254740993}}`, `[{"op":"move","from":"/a","path":"/b"},{"op":"copy","from":"/b/x","path":"/c"}]`},
		{`{"a/b":"~"}`, `[{"op":"test","path":"/a~1b","value":"~"},{"op":"add","path":"/~0","value":{"":[]}}]`},
		{`{}`, `[]`},
		{``, `[{"op":"add","path":"/a","value":1}]`},
		{`[]`, `[{"op":"add","path":"/0","value":1}]`},
		{`{"a":1}`, `null`},
		{`{"a":1}`, `[{"op":"test","path":""}]`},
		{`{"a":[null]}`, `[{"op":"test","path":"/a","value":[null]}]`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, document, patch string) {
		got, err := canonical([]byte(document), []byte(patch))
		if err != nil || len(got) == 0 {
			return
		}
		theirs, err := jsonpatchv4.DecodePatch([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		ours, err := jsonpatchv4.DecodePatch(got.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		want, err := theirs.Apply([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		applied, err := ours.Apply([]byte(document))
		if err != nil {
			t.Fatalf("%s cannot be applied: %v", got.AppendJSON(nil), err)
		}
		wanted, err := decode(want)
		if err != nil {
			t.Fatal(err)
		}
		have, err := decode(applied)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(have, wanted) {
			t.Errorf("%s gives %s, want %s", got.AppendJSON(nil), applied, want)
		}
	})
}
