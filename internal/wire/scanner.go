// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A scanner reads JSON (RFC 8259) from memory in one pass and checks all of it:
// syntax, UTF-8 and surrogate pairs, that no object has a name twice (RFC 7493),
// and that nothing is nested deeper than maxDepth. What it passes over is checked
// as well as what it returns, and nothing is copied but names with escapes. It
// exists because these checks are most of what a review costs, and it makes them in
// less time than a general decoder (BenchmarkScan).
//
// Its methods take the position to read from and return the one behind what they
// have read. After an error a scanner is of no use.
type scanner struct {
	data  []byte
	depth int
	names []name // of the objects that are being read, innermost last
	// unquoted holds those of the names that are written with escapes.
	unquoted []byte
}

// newScanner returns a scanner with room for the names of most reviews.
func newScanner(data []byte) scanner {
	return scanner{data: data, names: make([]name, 0, 96)}
}

// A name is the name of a member. It holds no pointers: that makes it cheap for
// the garbage collector.
type name struct {
	print uint64 // the fingerprint, which tells most names apart
	// start and end are where it stands: in the data, or in unquoted if start is
	// the complement of its place.
	start, end int
}

// mapThreshold is the size from which an object's names are looked up in a map
// instead of compared one by one.
const mapThreshold = 48

// A syntaxError says what is wrong and where, and repeats nothing of the content.
type syntaxError struct {
	offset int
	what   string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

func fail(i int, what string) (int, error) { return i, &syntaxError{offset: i, what: what} }

// unexpected says that something else should stand at i.
func (s *scanner) unexpected(i int, want string) (int, error) {
	if i >= len(s.data) {
		return fail(i, "the end in the middle: expected "+want)
	}
	return fail(i, "expected "+want)
}

func tooDeep(i int) (int, error) {
	return fail(i, fmt.Sprintf("nested deeper than %d levels", maxDepth))
}

// peek passes over white space and returns the byte behind it, 0 at the end, and
// its position.
func (s *scanner) peek(i int) (byte, int) {
	for ; i < len(s.data); i++ {
		if c := s.data[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, i
		}
	}
	return 0, i
}

// end reports what stands behind the only value of the data.
func (s *scanner) end(i int) error {
	if _, i = s.peek(i); i < len(s.data) {
		_, err := fail(i, "more behind the end")
		return err
	}
	return nil
}

// skip passes over the next value.
func (s *scanner) skip(i int) (int, error) {
	c, i := s.peek(i)
	switch c {
	case '"':
		i, _, err := s.text(i)
		return i, err
	case '{':
		return s.object(i, nil)
	case '[':
		return s.array(i, nil)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		return s.number(i)
	}
}

// value reads the next value and returns its bytes, without room to grow into
// what stands behind them.
func (s *scanner) value(i int) (int, []byte, error) {
	_, start := s.peek(i)
	i, err := s.skip(start)
	if err != nil {
		return i, nil, err
	}
	return i, s.data[start:i:i], nil
}

// object reads the object that begins at i. Behind each name it calls member,
// which reads the value that follows; without a member it skips the values.
func (s *scanner) object(i int, member func(name []byte, i int) (int, error)) (int, error) {
	if s.depth++; s.depth > maxDepth {
		return tooDeep(i)
	}
	c, i := s.peek(i + 1)
	if c == '}' {
		s.depth--
		return i + 1, nil
	}
	first, unquoted := len(s.names), len(s.unquoted)
	var known map[string]bool
	for {
		if c != '"' {
			return s.unexpected(i, "a name")
		}
		end, escaped, err := s.text(i)
		if err != nil {
			return end, err
		}
		n := name{start: i + 1, end: end - 1}
		if escaped {
			if n, err = s.unescaped(i, end); err != nil {
				return i, err
			}
		}
		content := s.content(&n)
		if known == nil {
			n.print = fingerprint(content)
			for k := first; k < len(s.names); k++ {
				if other := &s.names[k]; other.print == n.print && bytes.Equal(s.content(other), content) {
					return fail(i, "a name that its object has before")
				}
			}
			s.names = append(s.names, n)
			if len(s.names)-first >= mapThreshold {
				known = s.namesFrom(first)
			}
		} else {
			size := len(known)
			if known[string(content)] = true; len(known) == size {
				return fail(i, "a name that its object has before")
			}
		}

		if c, i = s.peek(end); c != ':' {
			return s.unexpected(i, "a colon")
		}
		if member == nil {
			i, err = s.skip(i + 1)
		} else {
			i, err = member(content, i+1)
		}
		if err != nil {
			return i, err
		}
		switch c, i = s.peek(i); c {
		case ',':
			c, i = s.peek(i + 1)
		case '}':
			s.depth--
			s.names, s.unquoted = s.names[:first], s.unquoted[:unquoted]
			return i + 1, nil
		default:
			return s.unexpected(i, "a comma or the end of the object")
		}
	}
}

// unescaped returns the name that is written with escapes from start to end.
func (s *scanner) unescaped(start, end int) (n name, err error) {
	if s.unquoted == nil {
		s.unquoted = make([]byte, 0, 256)
	}
	n.start = ^len(s.unquoted)
	s.unquoted, err = jsontext.AppendUnquote(s.unquoted, s.data[start:end])
	n.end = len(s.unquoted)
	return n, err
}

func (s *scanner) content(n *name) []byte {
	if n.start < 0 {
		return s.unquoted[^n.start:n.end]
	}
	return s.data[n.start:n.end]
}

// namesFrom returns the names from the given one on as a set.
func (s *scanner) namesFrom(first int) map[string]bool {
	set := make(map[string]bool, 2*mapThreshold)
	for i := first; i < len(s.names); i++ {
		set[string(s.content(&s.names[i]))] = true
	}
	return set
}

// fingerprint tells most names apart without looking at all of them.
func fingerprint(b []byte) uint64 {
	n := uint64(len(b))
	if n >= 8 {
		head, tail := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
		return head ^ bits.RotateLeft64(tail, 31) ^ n<<56
	}
	if cap(b) >= 8 { // in one go, what stands behind b shifted out
		return binary.LittleEndian.Uint64(b[:8])<<(64-8*n) | n
	}
	for i, c := range b {
		n |= uint64(c) << (64 - 8*(len(b)-i))
	}
	return n
}

// array reads the array that begins at i and calls element, which reads the next
// value, for each; without an element it skips the values.
func (s *scanner) array(i int, element func(i int) (int, error)) (int, error) {
	if s.depth++; s.depth > maxDepth {
		return tooDeep(i)
	}
	c, i := s.peek(i + 1)
	if c == ']' {
		s.depth--
		return i + 1, nil
	}
	for {
		var err error
		if element == nil {
			i, err = s.skip(i)
		} else {
			i, err = element(i)
		}
		if err != nil {
			return i, err
		}
		switch c, i = s.peek(i); c {
		case ',':
			i++
		case ']':
			s.depth--
			return i + 1, nil
		default:
			return s.unexpected(i, "a comma or the end of the array")
		}
	}
}

func (s *scanner) literal(i int, literal string) (int, error) {
	if !bytes.HasPrefix(s.data[i:], []byte(literal)) {
		return s.unexpected(i, "a value")
	}
	return i + len(literal), nil
}

// number reads what section 6 of RFC 8259 allows.
func (s *scanner) number(i int) (int, error) {
	start := i
	if s.at(i, "-") {
		i++
	}
	switch first := i; {
	case s.at(i, "0"):
		i++
	default:
		if i = s.digits(i); i == first {
			return s.unexpected(start, "a value")
		}
	}
	if s.at(i, ".") {
		first := i + 1
		if i = s.digits(first); i == first {
			return s.unexpected(i, "a digit")
		}
	}
	if s.at(i, "eE") {
		i++
		if s.at(i, "+-") {
			i++
		}
		first := i
		if i = s.digits(i); i == first {
			return s.unexpected(i, "a digit")
		}
	}
	return i, nil
}

// at tells whether one of the characters stands at i.
func (s *scanner) at(i int, chars string) bool {
	return i < len(s.data) && strings.IndexByte(chars, s.data[i]) >= 0
}

// digits passes over digits.
func (s *scanner) digits(i int) int {
	for i < len(s.data) && s.data[i]-'0' <= 9 {
		i++
	}
	return i
}

// text passes over the string that begins at start and tells whether it holds
// escapes.
func (s *scanner) text(start int) (i int, escaped bool, err error) {
	data, ascii := s.data, true
	for i = start + 1; i < len(data); {
		if i+8 <= len(data) {
			found := special(binary.LittleEndian.Uint64(data[i:]))
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch c := data[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(data[start:i]) {
				i, err = fail(start, "invalid UTF-8 in the string")
				return i, false, err
			}
			return i + 1, escaped, nil
		case c == '\\':
			n := escape(data[i:])
			if n == 0 {
				i, err = fail(i, "an invalid escape")
				return i, false, err
			}
			escaped = true
			i += n
		case c < ' ':
			i, err = fail(i, "a control character in a string")
			return i, false, err
		case c >= utf8.RuneSelf:
			ascii = false
			for i < len(data) && data[i] >= utf8.RuneSelf {
				i++
			}
		default:
			i++
		}
	}
	i, err = fail(i, "the end in a string")
	return i, false, err
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

// escape returns the length of the escape that data begins with, 0 if it is none.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := hex4(data)
		switch {
		case !ok:
			return 0
		case !utf16.IsSurrogate(r):
			return 6
		}
		low, ok := hex4(data[6:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return 0
		}
		return 12
	}
	return 0
}

// hex4 reads \uXXXX.
func hex4(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range data[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
