// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestPatchAppendJSON(t *testing.T) {
	v := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tc := range []struct {
		name  string
		patch Patch
		want  string
	}{
		{"no operations are an empty array", nil, `[]`},
		{"add with a null", Patch{{Op: Add, Path: "/a", Value: v(`null`)}}, `[{"op":"add","path":"/a","value":null}]`},
		{"remove has no value", Patch{{Op: Remove, Path: "/a/0"}}, `[{"op":"remove","path":"/a/0"}]`},
		{"operations stay in order", Patch{{Op: Test, Path: "", Value: v(`{}`)}, {Op: Replace, Path: "/b", Value: v(`[1]`)}}, `[{"op":"test","path":"","value":{}},{"op":"replace","path":"/b","value":[1]}]`},
		{"move and copy have a source", Patch{{Op: Move, From: "/a", Path: "/b"}, {Op: Copy, From: "/b", Path: "/c"}}, `[{"op":"move","path":"/b","from":"/a"},{"op":"copy","path":"/c","from":"/b"}]`},
		{"the source may be the whole document", Patch{{Op: Copy, From: "", Path: "/a"}}, `[{"op":"copy","path":"/a","from":""}]`},
		{"paths are escaped as JSON strings", Patch{{Op: Remove, Path: "/a\"\\\n\x7fä😀"}}, `[{"op":"remove","path":"/a\"\\\n` + "\x7f" + `ä😀"}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.patch.AppendJSON([]byte("head"))
			if string(got) != "head"+tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
			if marshalled, err := json.Marshal(tc.patch); err != nil || canonical(t, marshalled) != canonical(t, []byte(tc.want)) {
				t.Errorf("MarshalJSON gives %s, %v", marshalled, err)
			}
			var back Patch
			if err := json.Unmarshal([]byte(tc.want), &back); err != nil {
				t.Fatal(err)
			}
			if len(back) != len(tc.patch) || len(back) > 0 && !reflect.DeepEqual(back, tc.patch) {
				t.Errorf("read back %#v", back)
			}
			if err := tc.patch.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPatchValidate(t *testing.T) {
	one := json.RawMessage(`1`)
	for _, tc := range []struct {
		name string
		op   Operation
		want string
	}{
		{"an operation without a name", Operation{Path: "/a", Value: one}, `unknown operation ""`},
		{"an unknown operation", Operation{Op: "merge", Path: "/a", Value: one}, `unknown operation "merge"`},
		{"a path without a slash", Operation{Op: Add, Path: "a", Value: one}, "does not begin with a slash"},
		{"a path with a lone tilde", Operation{Op: Remove, Path: "/a~b"}, "a tilde must be followed"},
		{"add without a value", Operation{Op: Add, Path: "/a"}, "the value is missing or no JSON"},
		{"replace with no JSON", Operation{Op: Replace, Path: "/a", Value: json.RawMessage(`{`)}, "the value is missing or no JSON"},
		{"test with two values", Operation{Op: Test, Path: "/a", Value: json.RawMessage(`1 2`)}, "the value is missing or no JSON"},
		{"move from nowhere", Operation{Op: Move, Path: "/a", From: "b"}, "does not begin with a slash"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Patch{{Op: Remove, Path: "/ok"}, tc.op}.Validate()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "operation 1") {
				t.Errorf("got %v", err)
			}
		})
	}
}
