// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// An emitter walks the edits and the document together, once, and turns the edits
// into operations. It goes into nothing that is not edited.
type emitter struct {
	reader Reader
	path   []byte
	patch  Patch
	err    error
}

// node emits what is to be done at a place that exists. SetOp is the operation
// that overwrites it: add does so for a member, but inserts before an element.
func (e *emitter) node(n *node, setOp string) {
	switch kind := e.reader.Kind(); {
	case n.removed, n.set != nil, kind == 'n', n.written != nil && e.otherForm(n):
		old := e.reader.Value()
		switch value := e.value(n, old); {
		case value == nil:
			e.emit(Operation{Op: Remove})
		case string(value) != string(old):
			e.emit(Operation{Op: setOp, Value: value})
		}
	case kind == '{' && len(n.appended) == 0 && n.list == nil:
		e.object(n)
	case kind == '[':
		e.array(n, setOp)
	default:
		e.reader.Skip()
		e.unfit(n, kind)
	}
}

// otherForm tells whether the document has another form of a value than the one
// that it writes.
func (e *emitter) otherForm(n *node) bool {
	r := e.reader // stays where it is
	return !reflect.DeepEqual(decode(n.written), decode(r.Value()))
}

func (e *emitter) object(n *node) {
	mark, left := len(e.patch), 0
	seen := make([]bool, len(n.children))
	e.reader.Object(func(name []byte) {
		i := n.find(name)
		if i < 0 || seen[i] {
			left++
			return
		}
		seen[i] = true
		child := n.children[i]
		if !child.gone() {
			left++
		}
		e.below(child.token, func() { e.node(child, Add) })
	})
	if n.vanishes && left == 0 {
		e.patch = e.patch[:mark]
		e.emit(Operation{Op: Remove})
		return
	}
	for i, child := range n.children {
		if seen[i] {
			continue
		}
		e.below(child.token, func() {
			if value := e.value(child, nil); value != nil {
				e.emit(Operation{Op: Add, Value: value})
			}
		})
	}
}

func (e *emitter) array(n *node, setOp string) {
	start, mark := e.reader.Offset(), len(e.patch)
	edited := n.elements()
	var removed []int
	length := 0
	e.reader.Array(func(index int) {
		length++
		if len(edited) == 0 || edited[0].index != index {
			return
		}
		child := edited[0].node
		edited = edited[1:]
		if child.gone() {
			removed = append(removed, index)
			return
		}
		e.below(child.token, func() { e.node(child, Replace) })
	})
	old := e.reader.Since(start)
	operations := len(removed) + len(n.appended)
	if n.list != nil {
		operations += n.list.moves()
	}
	if listOperation(operations, len(old)) {
		e.patch = e.patch[:mark]
		e.emit(Operation{Op: setOp, Value: e.value(n, old)})
		return
	}
	if e.missing(n, length) {
		return
	}
	e.elements(n, removed)
}

// elements emits the removals, moves and additions of elements.
func (e *emitter) elements(n *node, removed []int) {
	// From the end, so that no index shifts before it is used.
	for _, index := range slices.Backward(removed) {
		e.below(itoa(index), func() { e.emit(Operation{Op: Remove}) })
	}
	if n.list != nil {
		e.arrange(n.list, n.appended)
		return
	}
	for _, value := range n.appended {
		e.below("-", func() { e.emit(Operation{Op: Add, Value: value}) })
	}
}

// blind emits the edits for a document that is what encoding/json writes for the
// value before.
func (e *emitter) blind(n *node, setOp string) {
	switch {
	case n.removed, n.vanishes:
		e.emit(Operation{Op: Remove})
	case n.set != nil:
		e.emit(Operation{Op: setOp, Value: n.set})
	case n.absent:
		e.emit(Operation{Op: setOp, Value: e.whole(n)})
	case n.list == nil:
		for _, child := range n.children {
			e.below(child.token, func() { e.blind(child, Add) })
		}
	default:
		var removed []int
		for _, child := range n.elements() {
			if child.removed {
				removed = append(removed, child.index)
			} else {
				e.below(child.token, func() { e.blind(child.node, Replace) })
			}
		}
		e.elements(n, removed)
	}
}

func (e *emitter) whole(n *node) jsontext.Value {
	value, err := n.whole.encode()
	if err != nil {
		e.fail("%w", err)
	}
	return value
}

// bytesPerOperation is how long a list may be, for each of its elements that is
// added or removed, to be sent as a whole. See listOperation.
const bytesPerOperation = 512

// listOperation tells whether one operation that carries the whole list, of which
// so many bytes were there before, is cheaper for the API server than an
// operation an element. BenchmarkListThreshold measures its time for
// reading answer and patch, applying it to a 7 KB pod and writing it into the audit
// log. In µs, an operation an element / one for the list (least of 150 runs on
// two cores):
//
//	elements before           +1         +2         +5         +10
//	  5 × 60 B             214/225    228/223    235/223    262/235
//	 20 × 60 B             273/271    285/277    290/283    319/292
//	100 × 60 B             567/558    572/547    582/561    608/577
//	  5 × 150 B            177/172    181/176    215/196    242/216
//	 20 × 150 B            258/257    268/277    284/271    330/296
//	100 × 150 B            646/683    703/716    712/683    718/709
//	  5 × 700 B            231/222    239/240    302/287    422/375
//	 20 × 700 B            605/614    596/615    674/672    796/786
//	100 × 700 B          2357/2575  2365/2627  2426/2709  2609/2737
//
// An operation costs about 2.6 µs, a byte that is sent again 3 to 4 ns, and
// about as much for the webhook, the wire and the log together.
func listOperation(operations, before int) bool {
	return operations > 1 && before <= operations*bytesPerOperation
}

// value returns what stands at a place after its edits, nil if nothing does. Old
// is what stood there, nil if nothing did.
func (e *emitter) value(n *node, old jsontext.Value) jsontext.Value {
	switch {
	case n.removed:
		old = nil
	case n.set != nil:
		if old = n.set; len(old) == 0 {
			e.fail("is to be set, but there is no value")
		}
	}
	if !n.below() {
		return old
	}
	r := NewReader(old)
	switch kind := r.Kind(); {
	case n.written != nil && !reflect.DeepEqual(decode(n.written), decode(old)):
		return e.whole(n)
	case (kind == 0 || kind == 'n') && !n.fills():
		return old
	case (kind == 0 || kind == 'n') && n.whole.known():
		return e.whole(n)
	case (kind == 0 || kind == 'n') && len(n.appended) > 0:
		return e.list(n, jsontext.Value("[]"))
	case kind == 0 || kind == 'n':
		return e.members(n, jsontext.Value("{}"))
	case kind == '{' && len(n.appended) == 0 && n.list == nil:
		return e.members(n, old)
	case kind == '[':
		return e.list(n, old)
	default:
		e.unfit(n, kind)
		return old
	}
}

// members returns the object after the edits of its members.
func (e *emitter) members(n *node, old jsontext.Value) jsontext.Value {
	out := append(make([]byte, 0, len(old)+64), '{')
	add := func(name string, value jsontext.Value) {
		if value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(AppendString(out, name), ':')
		out = append(out, value...)
	}
	seen := make([]bool, len(n.children))
	r := NewReader(old)
	r.Object(func(name []byte) {
		name, value := slices.Clone(name), r.Value()
		if i := n.find(name); i >= 0 {
			seen[i] = true
			e.below(n.children[i].token, func() { value = e.value(n.children[i], value) })
		}
		add(string(name), value)
	})
	for i, child := range n.children {
		if !seen[i] {
			e.below(child.token, func() { add(child.token, e.value(child, nil)) })
		}
	}
	if n.vanishes && len(out) == 1 {
		return nil
	}
	return append(out, '}')
}

// list returns the array after the edits of its elements. Those that are not
// edited keep their bytes.
func (e *emitter) list(n *node, old jsontext.Value) jsontext.Value {
	var values []jsontext.Value
	r := NewReader(old)
	r.Array(func(int) { values = append(values, r.Value()) })
	if e.missing(n, len(values)) {
		return old
	}
	for _, child := range n.elements() {
		if child.index < len(values) {
			e.below(child.token, func() { values[child.index] = e.value(child.node, values[child.index]) })
		}
	}
	if n.list != nil {
		values = n.list.apply(values, n.appended)
	} else {
		values = append(slices.DeleteFunc(values, func(v jsontext.Value) bool { return v == nil }), n.appended...)
	}
	size := 2
	for _, value := range values {
		size += len(value) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, value := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']')
}

// missing reports the edits of elements that an array of the length does not
// have.
func (e *emitter) missing(n *node, length int) bool {
	if n.list != nil {
		if length != n.list.length {
			e.fail("has %d elements, not %d", length, n.list.length)
		}
		return length != n.list.length
	}
	missing := false
	for _, child := range n.children {
		if i, ok := arrayIndex(child.token); (!ok || i >= length) && (child.set != nil || child.fills()) {
			e.fail("has %d elements: there is no %q to edit", length, child.token)
			missing = true
		}
	}
	return missing
}

// unfit reports edits inside a value that cannot hold them.
func (e *emitter) unfit(n *node, kind jsontext.Kind) {
	switch {
	case !n.fills():
	case len(n.appended) > 0 || n.list != nil:
		e.fail("cannot append to %s", kindName(kind))
	default:
		e.fail("cannot edit below %s", kindName(kind))
	}
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '"':
		return "a string"
	case '0':
		return "a number"
	default:
		return "a boolean"
	}
}

// below does f one reference token further down.
func (e *emitter) below(token string, f func()) {
	length := len(e.path)
	e.path = appendToken(e.path, token)
	f()
	e.path = e.path[:length]
}

func (e *emitter) emit(op Operation) {
	op.Path = string(e.path)
	e.patch = append(e.patch, op)
}

// fail keeps the first error, with its place.
func (e *emitter) fail(format string, args ...any) {
	if e.err != nil {
		return
	}
	e.err = fmt.Errorf("%s: %w", place(e.path), fmt.Errorf(format, args...))
}

func place(path []byte) string {
	if len(path) == 0 {
		return "the document"
	}
	return string(path)
}
