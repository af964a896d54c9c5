// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
)

// text skips the string that begins here and reports whether it holds escapes.
func (r *Reader) text() (escaped bool) {
	if r.check == nil {
		r.pos, escaped = quotedEnd(r.data, r.pos)
		return escaped
	}
	end, holds := textEnd(r.data, r.pos)
	if holds != 0 && !r.validText(end, holds) {
		return false
	}
	r.pos = min(end, len(r.data))
	return holds&escapes != 0
}

// scalar checks the number or literal that begins here with c.
func (r *Reader) scalar(c byte) {
	switch c {
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		r.number()
	}
}

func (r *Reader) literal(literal string) {
	if !bytes.HasPrefix(r.data[r.pos:], []byte(literal)) {
		r.Expected("a value")
		return
	}
	r.pos += len(literal)
}

// number reads a number as RFC 8259, section 6 defines it.
func (r *Reader) number() {
	start := r.pos
	r.any("-")
	if !r.any("0") && !r.digits() {
		r.pos = start
		r.Expected("a value")
		return
	}
	if r.any(".") && !r.digits() {
		r.Expected("a digit")
		return
	}
	if r.any("eE") {
		r.any("+-")
		if !r.digits() {
			r.Expected("a digit")
		}
	}
}

// any consumes one of the characters, if one follows.
func (r *Reader) any(chars string) bool {
	for i := range len(chars) {
		if r.peekAt(r.pos) == chars[i] {
			r.pos++
			return true
		}
	}
	return false
}

// digits consumes digits and reports whether there are any.
func (r *Reader) digits() bool {
	start := r.pos
	for r.pos < len(r.data) && r.data[r.pos]-'0' <= 9 {
		r.pos++
	}
	return r.pos > start
}

// scalarEnd returns the index after the number or literal that begins at data[i].
func scalarEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return i
		}
	}
	return len(data)
}
