// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	evanphx "gopkg.in/evanphx/json-patch.v4"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

func TestBuilderPatch(t *testing.T) {
	v := func(s string) json.RawMessage { return json.RawMessage(s) }
	long := `"` + strings.Repeat("x", 2*bytesPerOperation) + `"`
	for _, tc := range []struct {
		name string
		raw  string
		edit func(b *Builder)
		want string // the patch
		doc  string // the document after it
	}{
		{
			"no edit gives no patch", `{"a":1}`, func(*Builder) {},
			`[]`, `{"a":1}`,
		},
		{
			"a new member is added", `{"a":1}`, func(b *Builder) { b.Set(v(`2`), "b") },
			`[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`,
		},
		{
			"a member that is there is added, which overwrites it", `{"a":1}`, func(b *Builder) { b.Set(v(`2`), "a") },
			`[{"op":"add","path":"/a","value":2}]`, `{"a":2}`,
		},
		{
			"setting equal bytes gives no operation", `{ "a" : 9007199254740993 }`, func(b *Builder) { b.Set(v(`9007199254740993`), "a") },
			`[]`, `{"a":9007199254740993}`,
		},
		{
			"setting null where null is gives no operation", `{"a":null}`, func(b *Builder) { b.Set(v(`null`), "a") },
			`[]`, `{"a":null}`,
		},
		{
			"a null can be set", `{"a":1}`, func(b *Builder) { b.Set(v(`null`), "a") },
			`[{"op":"add","path":"/a","value":null}]`, `{"a":null}`,
		},
		{
			"absent parents are created by one operation", `{"spec":{}}`, func(b *Builder) {
				b.Set(v(`"1"`), "spec", "template", "labels", "a")
				b.Set(v(`"2"`), "spec", "template", "labels", "b")
			},
			`[{"op":"add","path":"/spec/template","value":{"labels":{"a":"1","b":"2"}}}]`,
			`{"spec":{"template":{"labels":{"a":"1","b":"2"}}}}`,
		},
		{
			"null parents are overwritten by one operation", `{"labels":null}`, func(b *Builder) { b.Set(v(`"1"`), "labels", "a") },
			`[{"op":"add","path":"/labels","value":{"a":"1"}}]`, `{"labels":{"a":"1"}}`,
		},
		{
			"a null element that is a parent is replaced, not moved away", `{"list":[1,null,3]}`, func(b *Builder) { b.Set(v(`2`), "list", "1", "x") },
			`[{"op":"replace","path":"/list/1","value":{"x":2}}]`, `{"list":[1,{"x":2},3]}`,
		},
		{
			"a null document becomes an object", `null`, func(b *Builder) { b.Set(v(`1`), "a") },
			`[{"op":"replace","path":"","value":{"a":1}}]`, `{"a":1}`,
		},
		{
			"the document itself is replaced", `{"a":1}`, func(b *Builder) { b.Set(v(`[1]`)) },
			`[{"op":"replace","path":"","value":[1]}]`, `[1]`,
		},
		{
			"a slash, a tilde and an empty name are escaped in the path", `{"annotations":{"x":""}}`, func(b *Builder) {
				b.Set(v(`1`), "annotations", "example.com/a~b")
				b.Set(v(`2`), "annotations", "")
			},
			`[{"op":"add","path":"/annotations/example.com~1a~0b","value":1},{"op":"add","path":"/annotations/","value":2}]`,
			`{"annotations":{"x":"","example.com/a~b":1,"":2}}`,
		},
		{
			"names that are written with escapes are found", `{"\u006dap":{"qu\"o\\te\ud83d\ude00":1}}`, func(b *Builder) {
				b.Set(v(`2`), "map", "qu\"o\\te😀")
			},
			`[{"op":"add","path":"/map/qu\"o\\te😀","value":2}]`, `{"map":{"qu\"o\\te😀":2}}`,
		},
		{
			"one element is appended by itself", `{"list":[1]}`, func(b *Builder) { b.Append([]string{"list"}, v(`2`)) },
			`[{"op":"add","path":"/list/-","value":2}]`, `{"list":[1,2]}`,
		},
		{
			"several elements are appended with a copy of a short list", `{"list":[ {"z":1, "a":9007199254740993} ]}`, func(b *Builder) {
				b.Append([]string{"list"}, v(`2`))
				b.Append([]string{"list"}, v(`3`))
			},
			`[{"op":"add","path":"/list","value":[{"z":1, "a":9007199254740993},2,3]}]`, `{"list":[{"z":1,"a":9007199254740993},2,3]}`,
		},
		{
			"several elements are appended to a long list one by one", `{"list":[` + long + `]}`, func(b *Builder) { b.Append([]string{"list"}, v(`2`), v(`3`)) },
			`[{"op":"add","path":"/list/-","value":2},{"op":"add","path":"/list/-","value":3}]`, `{"list":[` + long + `,2,3]}`,
		},
		{
			"several elements are appended to an empty list", `{"list":[ ]}`, func(b *Builder) { b.Append([]string{"list"}, v(`2`), v(`3`)) },
			`[{"op":"add","path":"/list","value":[2,3]}]`, `{"list":[2,3]}`,
		},
		{
			"an absent list is created", `{}`, func(b *Builder) { b.Append([]string{"list"}, v(`2`)) },
			`[{"op":"add","path":"/list","value":[2]}]`, `{"list":[2]}`,
		},
		{
			"a null list is created", `{"list":null}`, func(b *Builder) { b.Append([]string{"list"}, v(`2`)) },
			`[{"op":"add","path":"/list","value":[2]}]`, `{"list":[2]}`,
		},
		{
			"a list in a list is replaced, not inserted before", `[[1],[2]]`, func(b *Builder) { b.Append([]string{"0"}, v(`3`), v(`4`)) },
			`[{"op":"replace","path":"/0","value":[1,3,4]}]`, `[[1,3,4],[2]]`,
		},
		{
			"several elements are appended to a document that is a list", `[1]`, func(b *Builder) { b.Append(nil, v(`2`), v(`3`)) },
			`[{"op":"replace","path":"","value":[1,2,3]}]`, `[1,2,3]`,
		},
		{
			"appending nothing gives no operation", `{}`, func(b *Builder) { b.Append([]string{"list"}) },
			`[]`, `{}`,
		},
		{
			"a member is removed", `{"a":1,"b":2}`, func(b *Builder) { b.Remove("a") },
			`[{"op":"remove","path":"/a"}]`, `{"b":2}`,
		},
		{
			"removing what is not there gives no operation", `{"a":{"b":1},"list":[1]}`, func(b *Builder) {
				b.Remove("x")
				b.Remove("x", "y")
				b.Remove("a", "b", "c")
				b.Remove("list", "1")
				b.Remove("list", "name")
			},
			`[]`, `{"a":{"b":1},"list":[1]}`,
		},
		{
			"indices are those of the document as it came", `{"list":[0,{"x":1},` + long + `,3,4]}`, func(b *Builder) {
				b.Remove("list", "0")
				b.Set(v(`2`), "list", "1", "x")
				b.Remove("list", "3")
				b.Set(v(`5`), "list", "4")
			},
			`[{"op":"add","path":"/list/1/x","value":2},{"op":"replace","path":"/list/4","value":5},{"op":"remove","path":"/list/3"},{"op":"remove","path":"/list/0"}]`,
			`{"list":[{"x":2},` + long + `,5]}`,
		},
		{
			"removing and appending in one short list copies what stays", `{"list":[0, 1.50,2]}`, func(b *Builder) {
				b.Append([]string{"list"}, v(`3`))
				b.Remove("list", "2")
				b.Remove("list", "0")
			},
			`[{"op":"add","path":"/list","value":[1.50,3]}]`, `{"list":[1.50,3]}`,
		},
		{
			"removing and appending in one long list removes first", `{"list":[0,` + long + `,2]}`, func(b *Builder) {
				b.Append([]string{"list"}, v(`3`))
				b.Remove("list", "0")
			},
			`[{"op":"remove","path":"/list/0"},{"op":"add","path":"/list/-","value":3}]`, `{"list":[` + long + `,2,3]}`,
		},
		{
			"editing elements and appending several in one short list", `{"list":[{"z":0,"a":1},{"b":2}]}`, func(b *Builder) {
				b.Set(v(`9`), "list", "0", "a")
				b.Append([]string{"list"}, v(`3`), v(`4`))
			},
			`[{"op":"add","path":"/list","value":[{"z":0,"a":9},{"b":2},3,4]}]`, `{"list":[{"z":0,"a":9},{"b":2},3,4]}`,
		},
		{
			"an element that is itself to be removed can be the only one", `{"list":[0]}`, func(b *Builder) { b.Remove("list", "0") },
			`[{"op":"remove","path":"/list/0"}]`, `{"list":[]}`,
		},
		{
			"a later set replaces earlier edits below", `{"a":{"b":1}}`, func(b *Builder) {
				b.Set(v(`2`), "a", "b")
				b.Append([]string{"a", "c"}, v(`1`))
				b.Set(v(`{}`), "a")
			},
			`[{"op":"add","path":"/a","value":{}}]`, `{"a":{}}`,
		},
		{
			"later edits below a value that was set change that value", `{"a":{"b":1}}`, func(b *Builder) {
				b.Set(v(`{"c": 1.0, "list":[0,1]}`), "a")
				b.Set(v(`2`), "a", "d")
				b.Remove("a", "list", "0")
				b.Append([]string{"a", "list"}, v(`2`))
			},
			`[{"op":"add","path":"/a","value":{"c":1.0,"list":[1,2],"d":2}}]`, `{"a":{"c":1.0,"list":[1,2],"d":2}}`,
		},
		{
			"later edits below a place that was removed make it anew", `{"a":{"b":1}}`, func(b *Builder) {
				b.Remove("a")
				b.Set(v(`2`), "a", "c")
			},
			`[{"op":"add","path":"/a","value":{"c":2}}]`, `{"a":{"c":2}}`,
		},
		{
			"a removal that is followed by removals below stays one", `{"a":{"b":1}}`, func(b *Builder) {
				b.Remove("a")
				b.Remove("a", "b")
			},
			`[{"op":"remove","path":"/a"}]`, `{}`,
		},
		{
			"removals below a value that was set and has no members change nothing", `{}`, func(b *Builder) {
				b.Set(v(`null`), "a")
				b.Remove("a", "b")
				b.Set(v(`1`), "c")
				b.Remove("c", "d")
			},
			`[{"op":"add","path":"/a","value":null},{"op":"add","path":"/c","value":1}]`, `{"a":null,"c":1}`,
		},
		{
			"white space in the document does not matter", " {\n\t\"a\" : { \"b\" : [ 1 , 2 ] } ,\r\n \"c\" : null } ", func(b *Builder) {
				b.Set(v(`3`), "a", "b", "1")
				b.Set(v(`4`), "c")
			},
			`[{"op":"replace","path":"/a/b/1","value":3},{"op":"add","path":"/c","value":4}]`, `{"a":{"b":[1,3]},"c":4}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBuilder([]byte(tc.raw))
			tc.edit(b)
			patch, err := b.Patch()
			if err != nil {
				t.Fatal(err)
			}
			if err := patch.Validate(); err != nil {
				t.Fatal(err)
			}
			wire := patch.AppendJSON(nil)
			if string(wire) != tc.want {
				t.Errorf("patch\n got %s\nwant %s", wire, tc.want)
			}
			if tc.raw == "null" {
				return // the API server's library expects an object or array
			}
			if got := apply(t, strings.TrimSpace(tc.raw), patch); canonical(t, got) != canonical(t, []byte(tc.doc)) {
				t.Errorf("document\n got %s\nwant %s", got, tc.doc)
			}
		})
	}
}

func TestBuilderPatchNamesThePlaceOfAnEditThatCannotBeMade(t *testing.T) {
	one := json.RawMessage(`1`)
	for _, tc := range []struct {
		name string
		raw  string
		edit func(b *Builder)
		want string
	}{
		{"a member of a string", `{"a":{"b":"s"}}`, func(b *Builder) { b.Set(one, "a", "b", "c") }, "/a/b: cannot edit below a string"},
		{"a member of a number", `{"a":{"b":1}}`, func(b *Builder) { b.Set(one, "a", "b", "c", "d") }, "/a/b: cannot edit below a number"},
		{"a member of a boolean", `{"a":true}`, func(b *Builder) { b.Set(one, "a", "b") }, "/a: cannot edit below a boolean"},
		{"appending to an object", `{"a":{}}`, func(b *Builder) { b.Append([]string{"a"}, one) }, "/a: cannot append to an object"},
		{"appending to a string", `{"a~/":"s"}`, func(b *Builder) { b.Append([]string{"a~/"}, one) }, "/a~0~1: cannot append to a string"},
		{"an element that is not there", `{"a":[0]}`, func(b *Builder) { b.Set(one, "a", "1") }, `/a: has 1 elements: there is no "1" to edit`},
		{"a member of an element that is not there", `{"a":[0]}`, func(b *Builder) { b.Set(one, "a", "7", "b") }, `/a: has 1 elements: there is no "7" to edit`},
		{"an array by name", `{"a":[0]}`, func(b *Builder) { b.Set(one, "a", "name") }, `/a: has 1 elements: there is no "name" to edit`},
		{"an index with a leading zero", `{"a":[0,1]}`, func(b *Builder) { b.Set(one, "a", "01") }, `/a: has 2 elements: there is no "01" to edit`},
		{"an index beyond any list", `{"a":[0,1]}`, func(b *Builder) { b.Set(one, "a", "9999999999") }, `there is no "9999999999" to edit`},
		{"members and elements of one absent place", `{}`, func(b *Builder) {
			b.Set(one, "a", "b")
			b.Append([]string{"a"}, one)
		}, `/a: has 0 elements: there is no "b" to edit`},
		{"below a value that was set", `{}`, func(b *Builder) {
			b.Set(one, "a")
			b.Set(one, "a", "b")
		}, `/a: cannot edit below a number`},
		{"an element of a list that was set", `{}`, func(b *Builder) {
			b.Set(json.RawMessage(`[]`), "a")
			b.Set(one, "a", "0")
		}, `/a: has 0 elements: there is no "0" to edit`},
		{"a value that is missing", `{"a":1}`, func(b *Builder) { b.Set(nil, "a") }, "/a: is to be set, but there is no value"},
		{"a document that is a string", `"s"`, func(b *Builder) { b.Set(one, "a") }, "the document: cannot edit below a string"},
		{"an empty document", ` `, func(b *Builder) { b.Set(one, "a") }, "there is no document to edit"},
		{"no document", ``, func(b *Builder) { b.Set(one, "a") }, "there is no document to edit"},
		{"the document away", `{}`, func(b *Builder) { b.Remove() }, "the whole document cannot be removed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBuilder([]byte(tc.raw))
			tc.edit(b)
			patch, err := b.Patch()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %s, %v; want an error with %q", patch, err, tc.want)
			}
			if patch != nil {
				t.Errorf("a patch beside the error: %s", patch)
			}
		})
	}
}

func TestBuilderOfAPart(t *testing.T) {
	value := json.RawMessage(`1`)
	other := Patch{{Op: Remove, Path: "/other"}}
	for _, tc := range []struct {
		name string
		raw  string
		edit func(b *Builder)
		want string // after the other operation; or
		err  string
	}{
		{"paths begin at the place", `{"x":1}`, func(b *Builder) { b.Set(value, "y/z") }, `{"op":"add","path":"/a~1b/c/y~1z","value":1}`, ""},
		{"a place that is absent is added", ``, func(b *Builder) { b.Append(nil, value) }, `{"op":"add","path":"/a~1b/c","value":[1]}`, ""},
		{"a place that is null is overwritten", `null`, func(b *Builder) { b.Set(value, "y") }, `{"op":"replace","path":"/a~1b/c","value":{"y":1}}`, ""},
		{"the place can be removed", `{}`, func(b *Builder) { b.Remove() }, `{"op":"remove","path":"/a~1b/c"}`, ""},
		{"what is absent needs no removal", ``, func(b *Builder) { b.Remove("y"); b.Remove() }, ``, ""},
		{"a list that is sent as a whole leaves the other operations", `[0]`, func(b *Builder) { b.Append(nil, value, value) }, `{"op":"replace","path":"/a~1b/c","value":[0,1,1]}`, ""},
		{"no edit", `[0]`, func(*Builder) {}, ``, ""},
		{"errors name the whole path", `{"y":"s"}`, func(b *Builder) { b.Set(value, "y", "z") }, ``, "/a~1b/c/y: cannot edit below a string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := NewBuilderAt("/a~1b/c", json.RawMessage(tc.raw))
			tc.edit(b)
			patch, err := b.AppendPatch(slices.Clone(other))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || patch != nil {
					t.Fatalf("got %s, %v", patch.AppendJSON(nil), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := `[{"op":"remove","path":"/other"}]`
			if tc.want != "" {
				want = `[{"op":"remove","path":"/other"},` + tc.want + `]`
			}
			if got := string(patch.AppendJSON(nil)); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

func TestBuilderWithManyEditsOfOneObjectFindsEach(t *testing.T) {
	b := NewBuilder([]byte(`{"k500":0,"k7":7}`))
	for range 2 {
		for i := range 1000 {
			b.Set(number(i), key(i))
		}
	}
	patch, err := b.Patch()
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) != 999 { // k7 already has its value
		t.Fatalf("got %d operations", len(patch))
	}
	if patch[0].Path != "/k500" || patch[1].Path != "/k0" {
		t.Errorf("operations out of order: %s", patch[:2])
	}
}

// apply applies a patch as the API server does.
func apply(t fataler, raw string, patch Patch) []byte {
	t.Helper()
	decoded, err := evanphx.DecodePatch(patch.AppendJSON(nil))
	if err != nil {
		t.Fatalf("%s: %v", patch.AppendJSON(nil), err)
	}
	out, err := decoded.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("%s on %s: %v", patch.AppendJSON(nil), raw, err)
	}
	return out
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// canonical returns the document with sorted names and no white space. Numbers keep
// their digits.
func canonical(t fataler, raw []byte) string {
	t.Helper()
	value := jsontext.Value(raw).Clone()
	if err := value.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return string(value)
}

func key(i int) string             { return "k" + string(number(i)) }
func number(i int) json.RawMessage { return json.RawMessage(itoa(i)) }

// FuzzBuilder makes edits in any document. The result is an error, or a patch that
// applies and includes the last edit.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,2,{"c":null}]},"0":[]}`), []byte("sab1.aab..rab0.sx."))
	f.Add([]byte(`[[],[1],{"a":1}]`), []byte("a0..r1.s2a..r0."))
	f.Add([]byte(` {"a" : [1`), []byte("aa....sa0."))
	f.Add([]byte(`null`), []byte("saab."))
	f.Add([]byte(`{"0"0[`), []byte("a0"))
	f.Fuzz(func(t *testing.T, data, edits []byte) {
		data = bytes.TrimSpace(data)
		raw := make([]byte, len(data)) // capacity equals length: reading past the end panics
		copy(raw, data)
		b := NewBuilder(raw)
		set := decodeEdits(edits, b)
		patch, err := b.Patch()
		if err != nil || !jsontext.Value(raw).IsValid() || raw[0] != '{' && raw[0] != '[' {
			return
		}
		if err := patch.Validate(); err != nil {
			t.Fatalf("%s on %s: %v", patch.AppendJSON(nil), raw, err)
		}
		got := apply(t, string(raw), patch)
		if set != nil {
			if value, ok := rawjson.Lookup(got, set...); !ok || string(value) != `"set"` {
				t.Errorf("%s on %s gives %s: nothing was set at %q", patch.AppendJSON(nil), raw, got, set)
			}
		}
	})
}

// decodeEdits reads edits from bytes: s, a or r, then one-byte tokens up to a full
// stop. It returns the place of the last edit if that edit is sure to be set and stay
// in place.
func decodeEdits(edits []byte, b *Builder) (set []string) {
	for edit := range bytes.SplitSeq(edits, []byte(".")) {
		if len(edit) == 0 {
			continue
		}
		var tokens []string
		numbers := false
		for _, c := range edit[1:] {
			numbers = numbers || '0' <= c && c <= '9'
			tokens = append(tokens, string(rune(c)))
		}
		set = nil
		switch edit[0] {
		case 's':
			if len(tokens) == 0 { // the API server's library expects an object or array
				b.Set(json.RawMessage(`{"a":[0]}`))
				continue
			}
			b.Set(json.RawMessage(`"set"`), tokens...)
			if !numbers {
				set = tokens
			}
		case 'a':
			b.Append(tokens, json.RawMessage(`1`), json.RawMessage(`{"a":[0]}`))
		case 'r':
			b.Remove(tokens...)
		}
	}
	return set
}
