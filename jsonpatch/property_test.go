// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// TestBuilderDoesWhatTheEditsSay compares the patched document with a model that makes
// the same edits on a decoded tree. Untouched parts must keep their tokens: digits,
// order of names, unknown fields.
func TestBuilderDoesWhatTheEditsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := drawDocument(t)
		root := &spot{raw: raw, edited: true} // the API server rewrites it in any case
		root.open()
		first, second := NewBuilder(raw), NewBuilder(slices.Clone(raw))
		for range rapid.IntRange(0, 8).Draw(t, "edits") {
			drawEdit(t, root, first, second)
		}
		patch, err := first.Patch()
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if err := patch.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := second.Patch()
		if err != nil || !bytes.Equal(patch.AppendJSON(nil), again.AppendJSON(nil)) {
			t.Fatalf("the same edits gave\n%s and\n%s, %v", patch.AppendJSON(nil), again.AppendJSON(nil), err)
		}
		root.compare(t, "", apply(t, string(raw), patch))
		if t.Failed() {
			t.Logf("document %s\npatch %s", raw, patch.AppendJSON(nil))
		}
	})
}

// An editor is a Builder, or several.
type editor interface {
	Set(value json.RawMessage, tokens ...string)
	Append(tokens []string, values ...json.RawMessage)
	Remove(tokens ...string)
}

// TestBuildersOfPartsDoWhatOneOfTheWholeDoes gives each member of the document its own
// builder.
func TestBuildersOfPartsDoWhatOneOfTheWholeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := drawObject(t, 4)
		root := &spot{raw: raw}
		root.open()
		whole, split := NewBuilder(raw), &parts{raw: raw}
		for range rapid.IntRange(0, 8).Draw(t, "edits") {
			drawEdit(t, root, whole, split)
		}
		want, err := whole.Patch()
		if err != nil {
			t.Fatal(err)
		}
		var got Patch
		for _, part := range split.builders {
			if got, err = part.AppendPatch(got); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := canonical(t, apply(t, string(raw), got)), canonical(t, apply(t, string(raw), want)); got != want {
			t.Errorf("%s\n got %s\nwant %s", raw, got, want)
		}
	})
}

// parts edits each member of an object with its own builder.
type parts struct {
	raw      []byte
	names    []string
	builders []*Builder
}

func (p *parts) at(name string) *Builder {
	i := slices.Index(p.names, name)
	if i < 0 {
		i = len(p.names)
		part, _ := rawjson.Lookup(p.raw, name)
		p.names, p.builders = append(p.names, name), append(p.builders, NewBuilderAt(Pointer(name), part))
	}
	return p.builders[i]
}

func (p *parts) Set(value json.RawMessage, tokens ...string) {
	p.at(tokens[0]).Set(value, tokens[1:]...)
}
func (p *parts) Remove(tokens ...string) { p.at(tokens[0]).Remove(tokens[1:]...) }
func (p *parts) Append(tokens []string, values ...json.RawMessage) {
	p.at(tokens[0]).Append(tokens[1:], values...)
}

// A spot is a value in the model: bytes until it is opened, then its parts.
type spot struct {
	raw      []byte // nil if there is no value
	object   map[string]*spot
	elements []*spot
	appended []*spot
	isArray  bool
	created  bool // created by an edit for its content
	edited   bool // at the spot itself, inside, or at list elements
}

func (p *spot) open() {
	if p.object != nil || p.isArray {
		return
	}
	switch {
	case len(p.raw) == 0:
	case bytes.TrimSpace(p.raw)[0] == '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(p.raw, &members); err != nil {
			panic(err)
		}
		p.object = map[string]*spot{}
		for name, value := range members {
			p.object[name] = &spot{raw: value}
		}
	case bytes.TrimSpace(p.raw)[0] == '[':
		var values []json.RawMessage
		if err := json.Unmarshal(p.raw, &values); err != nil {
			panic(err)
		}
		p.isArray = true
		for _, value := range values {
			p.elements = append(p.elements, &spot{raw: value})
		}
	}
}

func (p *spot) null() bool {
	return !p.isArray && p.object == nil && (p.raw == nil || string(bytes.TrimSpace(p.raw)) == "null")
}

// gone reports whether the spot has no value.
func (p *spot) gone() bool {
	if p.raw != nil {
		return false
	}
	if p.isArray {
		return p.created && p.size() == 0
	}
	return p.size() == 0
}

// size returns the number of existing parts.
func (p *spot) size() int {
	n := len(p.appended)
	for _, part := range p.object {
		if !part.gone() {
			n++
		}
	}
	for _, part := range p.elements {
		if !part.gone() {
			n++
		}
	}
	return n
}

func (p *spot) compare(t *rapid.T, at string, got []byte) {
	switch {
	case !p.edited, p.object == nil && !p.isArray:
		if want, have := tokens(p.raw), tokens(got); !slices.Equal(want, have) {
			t.Errorf("%s: untouched\n got %s\nwant %s", at, got, p.raw)
		}
	case p.created && p.size() == 0: // created, but still empty
		if string(got) != "null" {
			t.Errorf("%s: got %s, want null", at, got)
		}
	case p.object != nil:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(got, &members); err != nil {
			t.Errorf("%s: %s: %v", at, got, err)
			return
		}
		for name, value := range members {
			if part := p.object[name]; part == nil || part.gone() {
				t.Errorf("%s: %q should not be there", at, name)
			} else {
				part.compare(t, at+Pointer(name), value)
			}
		}
		for name, part := range p.object {
			if _, ok := members[name]; !ok && !part.gone() {
				t.Errorf("%s: %q is missing", at, name)
			}
		}
	case p.isArray:
		var values []json.RawMessage
		if err := json.Unmarshal(got, &values); err != nil {
			t.Errorf("%s: %s: %v", at, got, err)
			return
		}
		want := slices.DeleteFunc(slices.Concat(p.elements, p.appended), (*spot).gone)
		if len(values) != len(want) {
			t.Errorf("%s: got %d elements in %s, want %d", at, len(values), got, len(want))
			return
		}
		for i, part := range want {
			part.compare(t, at+"/"+itoa(i), values[i])
		}
	}
}

// tokens returns the tokens of a value. Values with the same order of names, digits and
// escaped content have equal tokens.
func tokens(raw []byte) []string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out []string
	for {
		token, err := dec.Token()
		if err != nil {
			return out
		}
		out = append(out, fmt.Sprintf("%T %v", token, token))
	}
}

// drawEdit makes one possible edit in the model and the builders.
func drawEdit(t *rapid.T, root *spot, builders ...editor) {
	p := root
	var path []string
	kind := rapid.SampledFrom([]string{"set", "append", "remove"}).Draw(t, "kind")
	var on []*spot
	for {
		on = append(on, p)
		p.open()
		last := len(path) > 0 && rapid.IntRange(0, 2).Draw(t, "stop") == 0
		if last && (kind != "append" || p.isArray || p.null()) {
			break
		}
		var token string
		switch {
		case p.isArray && len(p.elements) > 0:
			i := rapid.IntRange(0, len(p.elements)-1).Draw(t, "index")
			token, p = itoa(i), p.elements[i]
		case p.object != nil || p.null() && len(path) < 6:
			names := slices.Sorted(maps.Keys(p.object))
			if len(names) > 0 && rapid.Bool().Draw(t, "there") {
				token = rapid.SampledFrom(names).Draw(t, "name")
			} else {
				token = drawName(t)
			}
			if kind == "remove" && p.object[token] == nil {
				p = &spot{} // not in the model: a removal creates nothing
			} else {
				if p.object == nil {
					p.object, p.created = map[string]*spot{}, true
				}
				if p.object[token] == nil {
					p.object[token] = &spot{}
				}
				p = p.object[token]
			}
		default:
			return
		}
		path = append(path, token)
	}
	switch kind {
	case "set":
		value := drawValue(t, 2)
		for _, b := range builders {
			b.Set(value, path...)
		}
		*p = spot{raw: value}
	case "append":
		values := make([]json.RawMessage, rapid.IntRange(1, 4).Draw(t, "count"))
		if !p.isArray {
			p.isArray, p.created = true, true
		}
		for i := range values {
			values[i] = drawValue(t, 1)
			p.appended = append(p.appended, &spot{raw: values[i]})
		}
		for _, b := range builders {
			b.Append(path, values...)
		}
	case "remove":
		for _, b := range builders {
			b.Remove(path...)
		}
		*p = spot{}
	}
	for _, above := range on {
		if above != p || kind == "append" {
			above.edited = true
		}
	}
}

func drawDocument(t *rapid.T) []byte {
	if rapid.IntRange(0, 9).Draw(t, "array document") == 0 {
		return drawArray(t, 4)
	}
	return drawObject(t, 4)
}

func drawValue(t *rapid.T, depth int) json.RawMessage {
	kinds := 6
	if depth > 0 {
		kinds = 10
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind of value") {
	case 0:
		return json.RawMessage("null")
	case 1:
		return json.RawMessage("true")
	case 2, 3:
		return json.RawMessage(rapid.SampledFrom([]string{
			"0", "1", "-1", "9007199254740993", "-9223372036854775808", "18446744073709551615", "1.0", "1.50", "1e2", "-0", "123456789012345678901234567890",
		}).Draw(t, "number"))
	case 4, 5, 6:
		return drawString(t)
	case 7, 8:
		return drawObject(t, depth-1)
	default:
		return drawArray(t, depth-1)
	}
}

func drawObject(t *rapid.T, depth int) json.RawMessage {
	out := []byte("{" + drawSpace(t))
	seen := map[string]bool{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name := drawName(t)
		if seen[name] {
			continue
		}
		if len(seen) > 0 {
			out = append(out, drawSpace(t)+","+drawSpace(t)...)
		}
		seen[name] = true
		out = append(out, escape(t, name)...)
		out = append(out, drawSpace(t)+":"+drawSpace(t)...)
		out = append(out, drawValue(t, depth)...)
	}
	return append(out, drawSpace(t)+"}"...)
}

func drawArray(t *rapid.T, depth int) json.RawMessage {
	out := []byte("[" + drawSpace(t))
	for i := range rapid.IntRange(0, 4).Draw(t, "elements") {
		if i > 0 {
			out = append(out, drawSpace(t)+","+drawSpace(t)...)
		}
		out = append(out, drawValue(t, depth)...)
	}
	return append(out, drawSpace(t)+"]"...)
}

func drawSpace(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n"}).Draw(t, "white space")
}

func drawName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "name", "0", "1", "-", "", "a/b", "~", "~1", "~01", `"`, `\`, "ä", "😀", "\u2028", "\x00", "\x7f", "<&>"}).Draw(t, "name")
}

func drawString(t *rapid.T) json.RawMessage {
	return escape(t, rapid.SampledFrom([]string{"", "x", `\`, `"`, `\"`, `,]}`, `{[:`, "ä\n", "😀", "</script>", "\u2028", "x\x00", long}).Draw(t, "string"))
}

// long makes a list too long to be sent again for a few edits.
var long = strings.Repeat("x", 8*bytesPerOperation)

// escape writes a JSON string in one of its forms.
func escape(t *rapid.T, s string) json.RawMessage {
	if rapid.IntRange(0, 3).Draw(t, "escaped") > 0 {
		out, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return out
	}
	out := []byte{'"'}
	for _, unit := range utf16.Encode([]rune(s)) {
		out = fmt.Appendf(out, `\u%04x`, unit)
	}
	return append(out, '"')
}
