// SPDX-License-Identifier: Apache-2.0

package rawjson

import "github.com/go-json-experiment/json/jsontext"

// Lookup returns the value at the reference tokens (RFC 6901, unescaped) in raw, and
// whether it exists. A null on the path or at its end is a value like any other. Raw
// must be valid JSON, see [NewReader].
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
			if n, isIndex := Index(tokens[0]); isIndex && n == index {
				found, ok = r.lookup(tokens[1:])
				r.Stop()
			}
		})
	default:
		r.Skip()
	}
	return found, ok
}

// Index parses an array index as RFC 6901, section 4 defines it: no sign, no leading
// zero.
func Index(token string) (int, bool) {
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
