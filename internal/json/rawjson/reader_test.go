// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func TestReaderObject(t *testing.T) {
	for _, tc := range []struct {
		name string
		raw  string
		want []string // name=value
	}{
		{"an empty object has no members", `{}`, nil},
		{"white space is passed over", " { \"a\" :\n1 ,\t\"b\":[ ] }\r\n", []string{"a=1", "b=[ ]"}},
		{"values of all kinds are told apart", `{"a":"x","b":-1.5e3,"c":true,"d":false,"e":null,"f":{"g":[1]},"h":[{"i":2}]}`, []string{
			`a="x"`, `b=-1.5e3`, `c=true`, `d=false`, `e=null`, `f={"g":[1]}`, `h=[{"i":2}]`,
		}},
		{"brackets, quotes and backslashes in strings do not end anything", `{"a":"}]\"\\","b\\\"":"\\\\","c":["]\\\""]}`, []string{
			`a="}]\"\\"`, `b\"="\\\\"`, `c=["]\\\""]`,
		}},
		{"names are unescaped", `{"\u0061\/\ud83d\ude00":1,"\n":2,"":3}`, []string{"a/😀=1", "\n=2", "=3"}},
		{"half a surrogate pair becomes U+FFFD, as in encoding/json", `{"\ud800x":1}`, []string{"\ufffdx=1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewReader([]byte(tc.raw))
			var got []string
			if !r.Object(func(name []byte) { got = append(got, string(name)+"="+string(r.Value())) }) {
				t.Error("no object")
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if r.Kind() != 0 {
				t.Errorf("something is left: %q", r.Value())
			}
			r = NewReader([]byte(tc.raw))
			count := 0
			r.Object(func([]byte) { count++ })
			if count != len(tc.want) {
				t.Errorf("%d members if their values are left, want %d", count, len(tc.want))
			}
		})
	}
}

func TestReaderPassesOverWhatIsOfAnotherKind(t *testing.T) {
	r := NewReader([]byte(`[ {"a":[1]} , [2,[3]] , "s\"" , -1e5 , null ]`))
	var kinds []string
	r.Array(func(i int) {
		kinds = append(kinds, string(rune(r.Kind())))
		var ok bool
		switch i {
		case 0:
			ok = r.Array(func(int) { t.Error("an object has no elements") })
		case 1:
			ok = r.Object(func([]byte) { t.Error("an array has no members") })
		case 2:
			ok = r.Object(func([]byte) { t.Error("a string has no members") })
		case 3:
			_, ok = r.String()
		case 4:
			ok = r.Array(func(int) { t.Error("null has no elements") })
		}
		if ok {
			t.Errorf("element %d was read as another kind", i)
		}
	})
	if got := strings.Join(kinds, ""); got != `{["0n` {
		t.Errorf("kinds %s", got)
	}
	if r.Kind() != 0 {
		t.Errorf("something is left: %q", r.Value())
	}
}

func TestReaderStopEndsAllThatIsBeingRead(t *testing.T) {
	r := NewReader([]byte(`{"a":[1,2,3],"b":4}`))
	var got []string
	r.Object(func(name []byte) {
		got = append(got, string(name))
		r.Array(func(i int) {
			got = append(got, string(r.Value()))
			if i == 1 {
				r.Stop()
			}
		})
	})
	if want := []string{"a", "1", "2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReaderSinceGivesTheBytesThatWereRead(t *testing.T) {
	r := NewReader([]byte(`{"a": [1, 2] , "b":4}`))
	r.Object(func(name []byte) {
		start := r.Offset()
		r.Array(func(int) {})
		if got := string(r.Since(start)); string(name) == "a" && got != `[1, 2]` {
			t.Errorf("got %q", got)
		}
	})
	if got := string(r.Since(0)); got != `{"a": [1, 2] , "b":4}` {
		t.Errorf("got %q", got)
	}
}

func TestReaderStringAliasesItsInputUnlessItHoldsEscapes(t *testing.T) {
	data := []byte(`["plain","\u0065"]`)
	r := NewReader(data)
	r.Array(func(i int) {
		s, ok := r.String()
		if !ok {
			t.Fatal("no string")
		}
		switch i {
		case 0:
			if string(s) != "plain" || &s[0] != &data[2] {
				t.Errorf("%q is a copy", s)
			}
		case 1:
			if string(s) != "e" {
				t.Errorf("got %q", s)
			}
		}
	})
}

func TestLookup(t *testing.T) {
	const raw = ` {"a":{"b/c":[10,{"d":null}],"~":"x"},"n":null,"e\u0066":1} `
	for _, tc := range []struct {
		name   string
		raw    string
		tokens []string
		want   string // "" if there is none
	}{
		{"no tokens lead to the whole document", raw, nil, strings.TrimSpace(raw)},
		{"a member of a member", raw, []string{"a", "~"}, `"x"`},
		{"an element", raw, []string{"a", "b/c", "0"}, `10`},
		{"a null at the end is a value", raw, []string{"a", "b/c", "1", "d"}, `null`},
		{"a name with an escape", raw, []string{"ef"}, `1`},
		{"nothing is below null", raw, []string{"n", "x"}, ``},
		{"nothing is below a string", raw, []string{"a", "~", "0"}, ``},
		{"an absent member", raw, []string{"b"}, ``},
		{"an element behind the end", raw, []string{"a", "b/c", "2"}, ``},
		{"the place behind the last element", raw, []string{"a", "b/c", "-"}, ``},
		{"an index with a leading zero", raw, []string{"a", "b/c", "00"}, ``},
		{"an index with a sign", raw, []string{"a", "b/c", "-1"}, ``},
		{"an array by name", raw, []string{"a", "b/c", "d"}, ``},
		{"an empty document holds nothing", "", nil, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := Lookup([]byte(tc.raw), tc.tokens...)
			if string(got) != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, tc.want)
			}
		})
	}
}

// FuzzReader checks that no input makes the reader panic, hang or read past the end,
// and that in valid JSON it finds the same as encoding/json.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{`, `[`, `"`, `"\`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[1,`, `[1`, `{,}`, `[}`, `{]`, `tru`, `-`,
		`{"a":{"b":[1,2,{"c":"\"\\"}]},"d":null}`, `[[[[]]]]`, `"\u00e4\ud83d\ude00\ud800"`, "\xff", `{"a":1}x`, `{"a" 1}`, `{"a"::1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add(recorded(f, "notebook.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		exact := make([]byte, len(data)) // capacity equals length: reading past the end panics
		copy(exact, data)
		r := NewReader(exact)
		got := read(&r, 0)
		r = NewReader(exact)
		for r.Kind() != 0 {
			before := r.pos
			r.Skip()
			if r.pos <= before {
				t.Fatalf("no progress at byte %d", before)
			}
		}
		Lookup(exact, "a", "0", "b")
		r = NewReader(exact)
		r.MemberText("a")
		r = NewReader(exact)
		new(Texts).SkipArray(&r)
		if !json.Valid(data) || !utf8.Valid(data) {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q\n got %#v\nwant %#v", data, got, want)
		}
		r = NewReader(exact)
		if whole := r.Value(); !bytes.Equal(whole, bytes.TrimSpace(exact)) {
			t.Errorf("the whole value: got %q", whole)
		}
		memberText(t, exact)
		arrayWithout(t, exact, got)
	})
}

// memberText compares MemberText with Lookup.
func memberText(t *testing.T, data []byte) {
	t.Helper()
	r := NewReader(data)
	text, at := r.MemberText("a")
	if r.Kind() != 0 {
		t.Errorf("%q: MemberText leaves %q", data, r.data[r.pos:])
	}
	var want []byte
	if value, _ := Lookup(data, "a"); value.Kind() == '"' && jsontext.Value(data).Kind() == '{' {
		member := NewReader(value)
		want, _ = member.String()
	}
	if !bytes.Equal(text, want) || at >= 0 && !bytes.Equal(data[at:at+len(text)], want) {
		t.Errorf("%q: the text at byte %d is %q, want %q", data, at, text, want)
	}
}

func TestReaderMemberText(t *testing.T) {
	for _, tc := range []struct {
		json, want string
		at         int
	}{
		{`{"a":"x","b":{"a":"y"}}`, "x", 6},
		{`{"b":[{"a":"y"}],"a" : "x" }`, "x", 24},
		{`{"a":"\"","b":1}`, `"`, -1},
		{`{"a":""}`, "", 6},
		{`{"a":1,"b":"x"}`, "", -1},
		{`{"b":"x"}`, "", -1},
		{`["a","x"]`, "", -1},
		{`"a"`, "", -1},
	} {
		r := NewReader([]byte("[" + tc.json + ",7]"))
		r.Array(func(index int) {
			if index == 1 {
				if last := r.Value(); string(last) != "7" {
					t.Errorf("%s is followed by %s", tc.json, last)
				}
				return
			}
			text, at := r.MemberText("a")
			if at > 0 {
				at-- // the bracket
			}
			if string(text) != tc.want || at != tc.at {
				t.Errorf("%s: got %q at byte %d, want %q at byte %d", tc.json, text, at, tc.want, tc.at)
			}
		})
		memberText(t, []byte(tc.json))
		err := Check([]byte(tc.json), 8, func(r *Reader) {
			if text, _ := r.MemberText("a"); string(text) != tc.want {
				t.Errorf("%s is checked: got %q", tc.json, text)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", tc.json, err)
		}
	}
}

// read decodes the next value as encoding/json decodes into any.
func read(r *Reader, depth int) any {
	if depth > 10_000 {
		r.Skip()
		return nil
	}
	switch r.Kind() {
	case '{':
		out := map[string]any{}
		r.Object(func(name []byte) { out[string(name)] = read(r, depth+1) })
		return out
	case '[':
		out := []any{}
		r.Array(func(int) { out = append(out, read(r, depth+1)) })
		return out
	case '"':
		s, _ := r.String()
		return string(s)
	case '0':
		return json.Number(r.Value())
	case 't', 'f':
		return string(r.Value()) == "true"
	default:
		r.Skip()
		return nil
	}
}
