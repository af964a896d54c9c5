// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// An emitter walks the edits and the document together, once, and turns the edits into
// operations. It skips everything that is not edited.
type emitter struct {
	reader rawjson.Reader
	path   []byte
	patch  Patch
	err    error
	// reads is above zero inside a value that decodes itself.
	reads int
}

// node emits the operations for an existing place. SetOp is the operation that
// overwrites it: add overwrites a member but inserts before an element.
func (e *emitter) node(n *node, setOp string) {
	defer e.enter(n)()
	switch kind := e.reader.Kind(); {
	case n.removed, n.set != nil, kind == 'n', n.written != nil && e.otherForm(n), e.otherShape(n, e.reader):
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

// otherForm reports whether the document has another form of a value than its encoding.
func (e *emitter) otherForm(n *node) bool {
	r := e.reader // a copy: e.reader does not move
	return !reflect.DeepEqual(decode(n.written), decode(r.Value()))
}

// enter begins a node. Call leave when its operations are emitted.
func (e *emitter) enter(n *node) (leave func()) {
	if !n.whole.reads() {
		return func() {}
	}
	e.reads++
	return func() { e.reads-- }
}

// otherShape reports whether a value that decodes itself, or a value inside one, has a
// short form in the document: a string for a struct or a list, a list for a map. A
// short form has nothing inside to edit.
func (e *emitter) otherShape(n *node, document rawjson.Reader) bool {
	kind := document.Kind()
	if e.reads == 0 || !n.below() || !n.whole.known() || kind == 0 || kind == 'n' {
		return false
	}
	if n.list == nil {
		return kind != '{'
	}
	length := 0
	return !document.Array(func(int) { length++ }) || length != n.list.length
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
	if n.grows() {
		e.grow(n, setOp, e.reader.Value())
		return
	}
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

// grow emits the additions to a list whose elements stay, without reading them.
func (e *emitter) grow(n *node, setOp string, old []byte) {
	if listOperation(len(n.appended), len(old)) {
		e.emit(Operation{Op: setOp, Value: e.value(n, old)})
		return
	}
	e.elements(n, nil)
}

// elements emits the removals, moves and additions of elements.
func (e *emitter) elements(n *node, removed []int) {
	// Backwards, so that no index shifts before it is used.
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

// blind emits the edits for a document that is the encoding/json form of the value
// before.
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

func (e *emitter) whole(n *node) json.RawMessage {
	value, err := n.whole.encode()
	if err != nil {
		e.fail("%w", err)
	}
	return value
}

// missing reports edits of elements beyond the end of an array.
func (e *emitter) missing(n *node, length int) bool {
	if n.list != nil {
		if length != n.list.length {
			e.fail("has %d elements, not %d", length, n.list.length)
		}
		return length != n.list.length
	}
	missing := false
	for _, child := range n.children {
		if i, ok := rawjson.Index(child.token); (!ok || i >= length) && (child.set != nil || child.fills()) {
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

// below calls f one reference token further down.
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
