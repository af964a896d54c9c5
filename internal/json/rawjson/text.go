// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// holds says what a string contains besides plain ASCII characters.
type holds uint8

const (
	escapes  holds = 1 << iota
	notASCII       // bytes from 0x80
	controls       // bytes that JSON requires to be escaped
	noEnd
)

// textEnd returns the index after the string that begins at data[i], and what it holds.
// The index exceeds len(data) if the data ends inside an escape.
//
// Most strings of a Kubernetes object are so short that comparing eight bytes at a time
// is faster than bytes.IndexByte.
func textEnd(data []byte, i int) (int, holds) {
	var found holds
	for i++; i < len(data); {
		if i+8 <= len(data) {
			marks := special(binary.LittleEndian.Uint64(data[i : i+8]))
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

// plainEnd is [textEnd] for a string of ASCII characters and escapes that [AppendString]
// writes the same way. For other strings, and near the end of the data, it returns 0.
func plainEnd(data []byte, i int) int {
	for i++; i+8 <= len(data); {
		marks := special(binary.LittleEndian.Uint64(data[i : i+8]))
		if marks == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(marks) / 8
		switch {
		case data[i] == '"':
			return i + 1
		case data[i] != '\\' || i+1 == len(data):
			return 0
		}
		switch data[i+1] {
		case '"', '\\', 'b', 'f', 'n', 'r', 't':
			i += 2
		default:
			return 0
		}
	}
	return 0
}

// quotedEnd returns the index after the valid string that begins at data[i], and
// whether it holds escapes.
func quotedEnd(data []byte, i int) (end int, escaped bool) {
	for i++; i < len(data); i++ {
		if i+8 <= len(data) {
			found := quotes(binary.LittleEndian.Uint64(data[i : i+8]))
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
			i++ // an escaped byte never ends the string
		}
	}
	return len(data), escaped
}

// shortEnd returns the index of the quote that ends the string whose content begins at start. It
// returns 0 for one with escapes, or near the end of the data. It is small enough to be inlined.
func shortEnd(data []byte, start int) int {
	for i := start; i+8 <= len(data); i += 8 {
		if found := quotes(binary.LittleEndian.Uint64(data[i : i+8])); found != 0 {
			if i += bits.TrailingZeros64(found) / 8; data[i] == '"' {
				return i
			}
			break
		}
	}
	return 0
}

// quotes marks quotes and backslashes among the eight bytes of v, as [special] does.
func quotes(v uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	return ((v ^ (ones * '"') - ones) | (v ^ (ones * '\\') - ones)) &^ v & high
}

// special marks quotes, backslashes, control characters and non-ASCII bytes among the
// eight bytes of v, each with its highest bit. A subtraction sets that bit in bytes
// that are too small for it: quotes and control characters, whose second bit is flipped to
// make quotes smaller than spaces, and backslashes, which become zero. In bytes above 0x7f,
// at least one subtraction leaves it set. The lowest mark is always right. Higher marks may
// be a borrow from it.
func special(v uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	return ((v ^ (ones * 2) - ones*('"'^2+1)) | (v ^ (ones * '\\') - ones)) & high
}

// unquote returns the content of a quoted string. The content aliases it if there are
// no escapes.
func unquote(quoted []byte, escaped bool) []byte {
	switch {
	case len(quoted) < 2:
		return nil
	case !escaped:
		return quoted[1 : len(quoted)-1]
	}
	// The error reports half a surrogate pair, which is replaced as in every Go JSON
	// decoder.
	out, _ := jsontext.AppendUnquote(nil, quoted)
	return out
}
