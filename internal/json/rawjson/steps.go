// SPDX-License-Identifier: Apache-2.0

package rawjson

// Steps reads a trusted input step by step: it is a [Reader] without a function per member,
// for callers that read most of what there is. A caller reads or skips each value.
type Steps struct{ Reader }

// NewSteps is [NewReader].
func NewSteps(data []byte) Steps { return Steps{NewReader(data)} }

// Name reads the next name of the object that is read, with the bracket or comma before it
// and the colon after it, or reads the end of the object and returns false. The name is
// valid as long as the input is.
func (r *Steps) Name() ([]byte, bool) {
	if !r.more('{', '}') {
		return nil, false
	}
	text := r.Text()
	if r.peekAt(r.pos) == ':' {
		r.pos++
	} else {
		r.next()
	}
	return text, true
}

// Element reads the bracket or comma before the next element of the array that is read, or
// the end of the array and returns false.
func (r *Steps) Element() bool { return r.more('[', ']') }

func (r *Steps) more(start, end byte) bool {
	switch c := r.next(); {
	case c == ',' || c == start && r.peek() != end:
		return r.peek() != 0
	case c == start:
		r.pos++
	}
	return false
}

// Text is [Reader.String] where a string is next.
func (r *Steps) Text() []byte {
	r.peek()
	start := r.pos
	if end := shortEnd(r.data, start+1); end > 0 {
		r.pos = end + 1
		return r.data[start+1 : end]
	}
	end, escaped := quotedEnd(r.data, start)
	r.pos = end
	return unquote(r.data[start:end], escaped)
}
