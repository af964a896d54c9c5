// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// holds is what makes a string more than the ASCII characters between its quotes.
type holds uint8

const (
	escapes  holds = 1 << iota
	notASCII       // bytes from 0x80
	controls       // bytes that JSON wants escaped
	noEnd
)

// textEnd returns the index behind the string that begins at data[i], and what it holds.
// The index is behind the end of data if that is in an escape.
//
// Most strings of a Kubernetes object are so short that looking at eight bytes at a time
// is faster than bytes.IndexByte.
func textEnd(data []byte, i int) (int, holds) {
	var found holds
	for i++; i < len(data); {
		if i+8 <= len(data) {
			marks := special(binary.LittleEndian.Uint64(data[i:]))
			if marks == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(marks) / 8
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, found
		case c == '\\':
			found |= escapes
			i += 2
		case c < ' ':
			found |= controls
			i++
		case c >= utf8.RuneSelf:
			found |= notASCII
			for i < len(data) && data[i] >= utf8.RuneSelf {
				i++
			}
		default:
			i++
		}
	}
	return i, found | noEnd
}

// quotedEnd returns the index behind the valid string that begins at data[i], and whether it
// holds escapes.
func quotedEnd(data []byte, i int) (end int, escaped bool) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for i++; i < len(data); i++ {
		if i+8 <= len(data) {
			v := binary.LittleEndian.Uint64(data[i:])
			quote, slash := v^(ones*'"'), v^(ones*'\\')
			found := ((quote-ones)&^quote | (slash-ones)&^slash) & high
			if found == 0 {
				i += 7
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
	}
	return len(data), escaped
}

// special marks, of the eight bytes in v, quotes, backslashes, control characters
// and what is not ASCII, each with its highest bit. A subtraction sets that bit in a
// byte that is too small for it; in bytes above 0x7f at least one leaves it set. The
// lowest mark is always right; those above it may be borrowed from it.
func special(v uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := v^(ones*'"'), v^(ones*'\\')
	return ((quote - ones) | (slash - ones) | (v - ones*' ')) & high
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
