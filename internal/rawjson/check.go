// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Check reads one JSON value from untrusted data and checks all of it: syntax, UTF-8
// and surrogate pairs, unique names in each object (RFC 7493) and nesting up to the
// limit. It also checks what read skips, or everything if read is nil. Only names and
// strings with escapes are copied.
//
// Errors say what is wrong and at which byte, and repeat none of the content. The first
// error wins, whether Check finds it or read reports it with [Reader.Fail].
//
// These checks are three quarters of BenchmarkReview in package wire.
// [jsontext.Value.IsValid] makes the same checks except depth. It takes 17.7 µs for a 7
// KB review, Check takes 12.5 µs (BenchmarkCheck, CPU). The difference is a third of
// BenchmarkReview.
func Check(data []byte, limit int, read func(r *Reader)) error {
	c := checks.Get().(*check)
	c.limit = limit
	c.reader = Reader{data: data, check: c}
	r := &c.reader
	at := r.Offset()
	if read != nil {
		read(r)
	}
	if r.pos == at {
		r.Skip()
	}
	if r.peek() != 0 || r.pos < len(data) {
		r.Fail("more behind the end")
	}
	err := c.err
	c.release()
	return err
}

// check holds the state of a checking reader.
type check struct {
	reader       Reader
	limit, depth int
	names        []name // of the objects that are being read, innermost last
	unquoted     []byte // names written with escapes
	err          error
}

// checks pools checks, whose memory costs as much as reading a small review. A new
// check has room for the names of most reviews.
var checks = sync.Pool{New: func() any { return &check{names: make([]name, 0, 96)} }}

// largestCheck bounds what goes back to the pool, in names and in bytes.
const largestCheck = 4096

func (c *check) release() {
	if cap(c.names) <= largestCheck && cap(c.unquoted) <= largestCheck {
		*c = check{names: c.names[:0], unquoted: c.unquoted[:0]}
		checks.Put(c)
	}
}

var errStopped = errors.New("not read to the end")

// A syntaxError says what is wrong and where.
type syntaxError struct {
	offset int
	what   string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

// Fail ends a check with an error about the current position.
func (r *Reader) Fail(what string) { r.failAt(r.pos, what) }

// Expected ends a check because the input holds something else here.
func (r *Reader) Expected(what string) {
	switch {
	case r.check == nil || r.failed():
		r.Stop()
	case r.pos >= len(r.data):
		r.Fail("the end in the middle: expected " + what)
	default:
		r.Fail("expected " + what)
	}
}

func (r *Reader) failAt(offset int, what string) {
	if r.check != nil && r.check.err == nil {
		r.check.err = &syntaxError{offset, what}
	}
	r.Stop()
}

// failed reports whether a check has ended.
func (r *Reader) failed() bool { return r.check != nil && r.check.err != nil }

// A scope is an object or array that is being read.
type scope struct {
	names, unquoted int             // the counts before it
	known           map[string]bool // its names, once there are many
}

// mapThreshold is the number of names from which an object's names are looked up in a
// map instead of compared one by one.
const mapThreshold = 48

// enter begins an object or array, unless it exceeds the depth limit.
func (r *Reader) enter() (s scope, ok bool) {
	c := r.check
	if c.depth++; c.depth > c.limit {
		r.Fail(fmt.Sprintf("nested deeper than %d levels", c.limit))
		return s, false
	}
	return scope{names: len(c.names), unquoted: len(c.unquoted)}, true
}

// leave passes over the bracket at the end of an object or array.
func (r *Reader) leave(s scope) {
	r.pos++
	c := r.check
	c.depth--
	c.names, c.unquoted = c.names[:s.names], c.unquoted[:s.unquoted]
}

// A name is the name of a member. It holds no pointers, so the garbage collector need
// not scan it.
type name struct {
	print uint64 // fingerprint, different for most names
	// start and end locate the name in data, or in unquoted if start is the complement
	// of its index there.
	start, end int
}

// name reads the name at the current position. It must be unique in its object.
func (r *Reader) name(s *scope) []byte {
	c, start := r.check, r.pos
	end, holds := textEnd(r.data, start)
	n := name{start: start + 1, end: end - 1}
	if holds&^notASCII == escapes {
		n.start = ^len(c.unquoted)
		var err error
		if c.unquoted, err = jsontext.AppendUnquote(c.unquoted, r.data[start:end]); err != nil {
			r.failAt(invalidIn(r.data[:end], start))
			return nil
		}
		n.end = len(c.unquoted)
	} else if holds != 0 && !r.validText(end, holds) {
		return nil
	}
	r.pos = end
	content := r.content(&n)
	before := false
	if s.known == nil {
		n.print = fingerprint(content)
		for k := s.names; k < len(c.names) && !before; k++ {
			other := &c.names[k]
			before = other.print == n.print && bytes.Equal(r.content(other), content)
		}
		c.names = append(c.names, n)
		if len(c.names)-s.names >= mapThreshold {
			s.known = r.namesFrom(s.names)
		}
	} else {
		size := len(s.known)
		s.known[string(content)] = true
		before = len(s.known) == size
	}
	if before {
		r.failAt(start, "a name that its object has before")
	}
	return content
}

func (r *Reader) content(n *name) []byte {
	if n.start < 0 {
		return r.check.unquoted[^n.start:n.end]
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

// validText checks a string that is not plain, from the current position to end.
func (r *Reader) validText(end int, holds holds) bool {
	switch {
	case holds == notASCII && utf8.Valid(r.data[r.pos:end]),
		holds&^notASCII == escapes && jsontext.Value(r.data[r.pos:end]).IsValid():
		return true
	case holds&noEnd != 0 && end > len(r.data):
		r.failAt(len(r.data)-1, "an invalid escape")
	case holds&noEnd != 0:
		r.failAt(end, "the end in a string")
	default:
		r.failAt(invalidIn(r.data[:end], r.pos))
	}
	return false
}

// invalidIn returns the problem of the unterminated string that starts at start, and
// its offset.
func invalidIn(data []byte, start int) (offset int, what string) {
	_, err := jsontext.NewDecoder(bytes.NewBuffer(data[start:])).ReadValue()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		switch offset := start + int(syntax.ByteOffset); {
		case data[offset] == '\\':
			return offset, "an invalid escape"
		case data[offset] < ' ':
			return offset, "a control character in a string"
		}
	}
	return start, "invalid UTF-8 in the string"
}
