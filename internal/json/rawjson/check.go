// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"errors"
	"fmt"
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
// [jsontext.Value.IsValid] makes the same checks except depth. It takes 16.8 µs for a 7
// KB review, Check takes 7.8 µs (BenchmarkCheck, CPU).
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
	reader  Reader
	limit   int     // of open
	open    []scope // innermost last
	names   []name  // of the objects that are being read, innermost last
	written []byte  // names with escapes: without, and as AppendString writes them
	err     error
}

// checks pools checks, whose memory costs as much as reading a small review. A new
// check has room for the names of most reviews.
var checks = sync.Pool{New: func() any { return &check{names: make([]name, 0, 96), open: make([]scope, 0, 32)} }}

// maxCheck bounds what goes back to the pool, in names, bytes and levels.
const maxCheck = 4096

func (c *check) release() {
	if cap(c.names) <= maxCheck && cap(c.written) <= maxCheck && cap(c.open) <= maxCheck {
		for i := range c.open { // after an error
			c.open[i].known = nil
		}
		*c = check{names: c.names[:0], written: c.written[:0], open: c.open[:0]}
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
	end            byte // the bracket at its end
	names, written int  // the counts before it
	// seen has a bit of each name, so that most names need no comparison. It has all bits
	// once known is used.
	seen  uint64
	known map[string]bool // the names, once there are many
}

// mapThreshold is the number of names from which an object's names are looked up in a
// map instead of compared one by one.
const mapThreshold = 48

// enter begins the object or array whose bracket is next, unless it exceeds the depth
// limit, or passes over it if it is empty. It returns false in both cases.
func (r *Reader) enter(bracket byte) bool {
	c := r.check
	depth := len(c.open)
	if depth == c.limit {
		r.Fail(fmt.Sprintf("nested deeper than %d levels", c.limit))
		return false
	}
	r.pos++
	if r.peek() == bracket+2 { // in ASCII
		r.pos++
		return false
	}
	if depth == cap(c.open) {
		c.open = append(c.open, scope{})
	}
	c.open = c.open[:depth+1]
	s := &c.open[depth] // to copy a scope would take longer
	s.end, s.names, s.written, s.seen = bracket+2, len(c.names), len(c.written), 0
	return true
}

// another passes over the comma before another member or element of the innermost scope
// and returns true, or over the end of the scope.
func (r *Reader) another() bool {
	c := r.check
	if r.failed() {
		return false
	}
	s := &c.open[len(c.open)-1]
	switch r.peek() {
	case ',':
		r.pos++
		return true
	case s.end:
		r.pos++
		c.leave(s)
	default:
		r.expectedIn(s)
	}
	return false
}

// leave ends the innermost scope.
func (c *check) leave(s *scope) {
	c.names, c.written = c.names[:s.names], c.written[:s.written]
	if s.known != nil {
		s.known = nil
	}
	c.open = c.open[:len(c.open)-1]
}

// expectedIn ends a check because of what follows a member or element.
func (r *Reader) expectedIn(s *scope) {
	if s.end == '}' {
		r.Expected("a comma or the end of the object")
	} else {
		r.Expected("a comma or the end of the array")
	}
}

// composite checks and skips the object or array that begins here with b. Its loop does
// what object and array do by recursion: nearly all of a review is skipped, and calls for
// each level and each name took longer than the checks.
func (r *Reader) composite(b byte) {
	c, data, i := r.check, r.data, r.pos
	outer := len(c.open)
	var s *scope // the innermost one
	for {
		// A value begins at i with b.
		end := 0
		switch b {
		case '{', '[':
			r.pos = i
			if i+1 < len(data) && data[i+1] == b+2 && len(c.open) < c.limit { // as most of managedFields
				end = i + 2
			} else if r.enter(b) {
				s = &c.open[len(c.open)-1]
				if b, i = next(data, r.pos); s.end == ']' {
					continue
				}
				goto name
			}
		case '"':
			if end = plainEnd(data, i); end == 0 {
				r.pos = i
				r.text()
			}
		default:
			r.pos = i
			r.scalar(b)
		}
		if i = end; end == 0 {
			i = r.pos
		}
		for ; len(c.open) > outer; i++ {
			if b, i = next(data, i); b != s.end {
				break
			}
			if c.leave(s); len(c.open) > 0 {
				s = &c.open[len(c.open)-1]
			}
		}
		if len(c.open) == outer {
			r.pos = i
			return
		}
		if b != ',' {
			r.pos = i
			r.expectedIn(s)
			return
		}
		if b, i = next(data, i+1); s.end == ']' {
			continue
		}
	name:
		if end := plainEnd(data, i); b == '"' && end > 0 && end < len(data) && data[end] == ':' {
			n := name{start: i + 1, end: end - 1, print: fingerprint(data[i+1 : end-1])}
			if bit := n.bit(); s.seen&bit == 0 {
				s.seen |= bit
				c.names = append(c.names, n)
				b, i = next(data, end+1)
				continue
			}
		}
		r.pos = i
		if _, ok := r.name(s); !ok {
			return
		}
		b, i = next(data, r.pos)
	}
}

// next is [Reader.peek] at i.
func next(data []byte, i int) (byte, int) {
	if i < len(data) && data[i] > ' ' {
		return data[i], i
	}
	return space(data, i)
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
