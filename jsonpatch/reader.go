// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	endian "encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader walks one JSON value in a single pass and decodes nothing that its
// caller does not ask for.
//
// It trusts its input: the value must have been validated before (the admission
// wire does so once per call). On anything else it stops early, never panics and
// never reads past the end; what it reports then is not defined.
type Reader struct {
	data []byte
	pos  int
}

// NewReader reads the JSON value in data. The slices it hands out alias data.
func NewReader(data []byte) Reader { return Reader{data: data} }

// Kind tells what the next value is without reading it: one of the kinds of
// package jsontext ('{', '[', '"', '0', 't', 'f', 'n'), or 0 at the end.
func (r *Reader) Kind() jsontext.Kind {
	r.space()
	if r.pos >= len(r.data) {
		return 0
	}
	switch c := r.data[r.pos]; c {
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	default:
		return jsontext.Kind(c)
	}
}

// Object reads an object and calls member for each of its members in order. The
// name is unescaped and only valid during the call. Member may read the value
// with r, or leave it: it is then passed over. If the next value is no object,
// it is passed over and Object returns false.
func (r *Reader) Object(member func(name []byte)) bool {
	if r.Kind() != '{' {
		r.Skip()
		return false
	}
	r.pos++
	for {
		if r.Kind() != '"' { // the end of the object, or of the input
			r.next()
			return true
		}
		name := unquote(r.token())
		r.next() // the colon
		r.space()
		at := r.pos
		member(name)
		if r.pos == at {
			r.Skip()
		}
		if r.next() != ',' {
			return true
		}
	}
}

// Array reads an array and calls element for each of its elements in order.
// Element may read the value with r, or leave it. If the next value is no array,
// it is passed over and Array returns false.
func (r *Reader) Array(element func(index int)) bool {
	if r.Kind() != '[' {
		r.Skip()
		return false
	}
	r.pos++
	for i := 0; ; i++ {
		if k := r.Kind(); k == ']' || k == 0 {
			r.next()
			return true
		}
		at := r.pos
		element(i)
		if r.pos == at {
			r.Skip()
		}
		if r.next() != ',' {
			return true
		}
	}
}

// next passes over one character behind white space and returns it, or 0 at the
// end: what separates and ends members and elements.
func (r *Reader) next() byte {
	r.space()
	if r.pos >= len(r.data) {
		return 0
	}
	r.pos++
	return r.data[r.pos-1]
}

// Value reads the next value and returns its bytes.
func (r *Reader) Value() jsontext.Value {
	start := r.Offset()
	r.Skip()
	return r.Since(start)
}

// String reads the next value if it is a string. The bytes alias the input
// unless the string holds escapes.
func (r *Reader) String() ([]byte, bool) {
	if r.Kind() != '"' {
		r.Skip()
		return nil, false
	}
	return unquote(r.token()), true
}

// Stop ends the reading: the objects and arrays that are being read have no
// further members and elements.
func (r *Reader) Stop() { r.pos = len(r.data) }

// Offset is where the next value begins.
func (r *Reader) Offset() int {
	r.space()
	return r.pos
}

// Since returns the bytes read since an [Reader.Offset].
func (r *Reader) Since(offset int) jsontext.Value {
	return jsontext.Value(r.data[min(offset, r.pos):r.pos])
}

// Skip passes over the next value.
func (r *Reader) Skip() {
	switch r.Kind() {
	case 0:
	case '"':
		r.token()
	case '{', '[':
		r.composite()
	default: // a number or literal ends where something else begins
		r.pos++
		for r.pos < len(r.data) {
			switch r.data[r.pos] {
			case ',', '}', ']', ' ', '\t', '\n', '\r':
				return
			}
			r.pos++
		}
	}
}

// composite passes over an object or array by counting brackets.
func (r *Reader) composite() {
	data, i, depth := r.data, r.pos, 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i, _ = stringEnd(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				r.pos = i + 1
				return
			}
		}
		i++
	}
	r.pos = len(data)
}

// token reads a string with its quotes, and tells whether it holds escapes.
func (r *Reader) token() (quoted []byte, escaped bool) {
	start := r.pos
	r.pos, escaped = stringEnd(r.data, start)
	return r.data[start:r.pos], escaped
}

func (r *Reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// stringEnd returns the index behind the string that begins at data[i], and whether the
// string holds escapes. Most strings of a Kubernetes object are so short that looking at
// eight bytes at a time is faster than calling bytes.IndexByte.
func stringEnd(data []byte, i int) (end int, escaped bool) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i++
	for i < len(data) {
		if i+8 <= len(data) {
			v := endian.LittleEndian.Uint64(data[i:])
			quote, slash := v^ones*'"', v^ones*'\\'
			found := ((quote-ones)&^quote | (slash-ones)&^slash) & high
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch data[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++ // what is escaped is no quote that ends the string
		}
		i++
	}
	return len(data), escaped
}

// unquote returns what a quoted string holds, aliasing it if it has no escapes.
func unquote(quoted []byte, escaped bool) []byte {
	switch {
	case len(quoted) < 2:
		return nil
	case !escaped:
		return quoted[1 : len(quoted)-1]
	}
	// The error is about half a surrogate pair, which is replaced as every JSON
	// decoder of Go does.
	out, _ := jsontext.AppendUnquote(nil, quoted)
	return out
}

// Lookup returns the bytes of the value that the reference tokens lead to in
// raw, and whether there is one. A null on the way, or at the end, is a value
// like any other. Raw must be valid JSON, see [Reader].
func Lookup(raw []byte, tokens ...string) (jsontext.Value, bool) {
	r := NewReader(raw)
	return r.lookup(tokens)
}

func (r *Reader) lookup(tokens []string) (found jsontext.Value, ok bool) {
	if len(tokens) == 0 {
		found = r.Value()
		return found, len(found) > 0
	}
	switch r.Kind() {
	case '{':
		r.Object(func(name []byte) {
			if string(name) == tokens[0] {
				found, ok = r.lookup(tokens[1:])
				r.Stop()
			}
		})
	case '[':
		r.Array(func(index int) {
			if n, isIndex := arrayIndex(tokens[0]); isIndex && n == index {
				found, ok = r.lookup(tokens[1:])
				r.Stop()
			}
		})
	default:
		r.Skip()
	}
	return found, ok
}

// arrayIndex reads an array index as RFC 6901, section 4 writes it: no sign, no
// leading zero.
func arrayIndex(token string) (int, bool) {
	if token == "" || len(token) > 9 || (token[0] == '0' && len(token) > 1) {
		return 0, false
	}
	n := 0
	for i := range len(token) {
		c := token[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
