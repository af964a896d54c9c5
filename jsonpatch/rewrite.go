// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// value returns the value of a place after its edits, or nil if there is none. Old is
// the value before, or nil.
func (e *emitter) value(n *node, old []byte) json.RawMessage {
	defer e.enter(n)()
	switch {
	case n.removed:
		old = nil
	case n.set != nil:
		if old = n.set; len(old) == 0 {
			e.fail("is to be set, but there is no value")
		}
	}
	if !n.below() && !n.absent {
		return old
	}
	r := rawjson.NewReader(old)
	switch kind := r.Kind(); {
	case e.otherShape(n, r):
		if n.vanishes && !n.fills() {
			return nil
		}
		return e.whole(n)
	case n.written != nil && !reflect.DeepEqual(decode(n.written), decode(old)):
		return e.whole(n)
	case (kind == 0 || kind == 'n') && !n.fills():
		return old
	case (kind == 0 || kind == 'n') && n.whole.known():
		return e.whole(n)
	case (kind == 0 || kind == 'n') && len(n.appended) > 0:
		return e.list(n, []byte("[]"))
	case kind == 0 || kind == 'n':
		return e.members(n, []byte("{}"))
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
func (e *emitter) members(n *node, old []byte) json.RawMessage {
	out := append(make([]byte, 0, len(old)+64), '{')
	add := func(name string, value []byte) {
		if value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendString(out, name), ':')
		out = append(out, value...)
	}
	seen := make([]bool, len(n.children))
	r := rawjson.NewReader(old)
	r.Object(func(name []byte) {
		name, value := slices.Clone(name), json.RawMessage(r.Value())
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

// list returns the array after the edits of its elements. Other elements keep their
// bytes.
func (e *emitter) list(n *node, old []byte) json.RawMessage {
	if n.grows() {
		return extended(old, n.appended)
	}
	var values []json.RawMessage
	r := rawjson.NewReader(old)
	r.Array(func(int) { values = append(values, json.RawMessage(r.Value())) })
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
		values = append(slices.DeleteFunc(values, func(v json.RawMessage) bool { return v == nil }), n.appended...)
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

// extended returns the array with more elements at its end.
func extended(array []byte, more []json.RawMessage) json.RawMessage {
	array = bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(array), []byte("[")), []byte("]")) // valid arrays have both
	elements := bytes.TrimSpace(array)
	size := len(elements) + 2
	for _, value := range more {
		size += len(value) + 1
	}
	out := append(append(make([]byte, 0, size), '['), elements...)
	for _, value := range more {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']')
}
