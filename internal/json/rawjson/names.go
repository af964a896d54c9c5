// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// A name is the name of a member. It holds no pointers, so the garbage collector need
// not scan it.
type name struct {
	print uint64 // fingerprint, different for most names
	// start and end locate the name, as AppendString writes it, in data, or in written if
	// start is the complement of its index there.
	start, end int
}

// name reads the name that must be next, unique in its object, and the colon after it.
func (r *Reader) name(s *scope) (content []byte, ok bool) {
	if r.peek() != '"' {
		r.Expected("a name")
		return nil, false
	}
	c, start := r.check, r.pos
	end, holds := textEnd(r.data, start)
	n := name{start: start + 1, end: end - 1}
	if holds&^notASCII == escapes {
		at := len(c.written)
		var err error
		if c.written, err = jsontext.AppendUnquote(c.written, r.data[start:end]); err != nil {
			r.failAt(invalidIn(r.data[:end], start))
			return nil, false
		}
		content = c.written[at:]
		n.start = ^(len(c.written) + len(`"`))
		c.written = AppendString(c.written, content)
		n.end = len(c.written) - len(`"`)
	} else if holds != 0 && !r.validText(end, holds) {
		return nil, false
	} else {
		content = r.data[n.start:n.end]
	}
	r.pos = end
	if r.hasName(s, &n) {
		r.failAt(start, "a name that its object has before")
		return nil, false
	}
	if r.peek() != ':' {
		r.Expected("a colon")
		return nil, false
	}
	r.pos++
	return content, true
}

// hasName reports whether the object has the name already, and adds it.
func (r *Reader) hasName(s *scope, n *name) bool {
	c, content := r.check, r.content(n)
	if s.known != nil {
		size := len(s.known)
		s.known[string(content)] = true
		return len(s.known) == size
	}
	n.print = fingerprint(content)
	bit := n.bit()
	if s.seen&bit != 0 {
		for k := s.names; k < len(c.names); k++ {
			if other := &c.names[k]; other.print == n.print && bytes.Equal(r.content(other), content) {
				return true
			}
		}
	}
	s.seen |= bit
	if c.names = append(c.names, *n); len(c.names)-s.names >= mapThreshold {
		s.known, s.seen = r.namesFrom(s.names), math.MaxUint64
	}
	return false
}

func (r *Reader) content(n *name) []byte {
	if n.start < 0 {
		return r.check.written[^n.start:n.end]
	}
	return r.data[n.start:n.end]
}

// namesFrom returns the names from index first on as a set.
func (r *Reader) namesFrom(first int) map[string]bool {
	set := make(map[string]bool, 2*mapThreshold)
	for i := first; i < len(r.check.names); i++ {
		set[string(r.content(&r.check.names[i]))] = true
	}
	return set
}

// bit is the name's in the scope's seen.
func (n *name) bit() uint64 { return 1 << (n.print * spread >> 58) }

// spread is an odd number whose products spread over all their highest bits: 2^64 divided
// by the golden ratio.
const spread = 0x9e3779b97f4a7c15

// fingerprint distinguishes most names without reading all of their bytes.
func fingerprint(b []byte) uint64 {
	n := uint64(len(b))
	if n >= 8 {
		head, tail := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
		return head ^ bits.RotateLeft64(tail, 31) ^ n<<56
	}
	if cap(b) >= 8 { // one load; shifts out what follows b
		return binary.LittleEndian.Uint64(b[:8])<<(64-8*n) | n
	}
	for i, c := range b {
		n |= uint64(c) << (64 - 8*(len(b)-i))
	}
	return n
}
