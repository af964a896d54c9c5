// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A node is a place in the document that is edited, or an ancestor of one.
type node struct {
	token    string
	children []*node           // in the order they were first named
	indices  map[string]int    // of the children, once there are many
	set      json.RawMessage   // replaces the current value
	removed  bool              // the current value is removed
	appended []json.RawMessage // new elements

	// Only Diff sets the fields below.

	// whole is the new value of the place, for documents that lack it.
	whole whole
	// absent: the encoding of the value before lacks the place, even if the document
	// has it. Afterwards the place exists.
	absent bool
	// vanishes: the place is removed if the edits leave it without members.
	vanishes bool
	// written is the encoding of a value before that encodes itself.
	written json.RawMessage
	// list describes the list at this place, or is nil.
	list *arrangement
}

// manyChildren is the number of children from which a map finds them.
const manyChildren = 16

// at returns the child with the token and creates it if necessary.
func (n *node) at(token string) *node {
	if n.indices != nil {
		if i, ok := n.indices[token]; ok {
			return n.children[i]
		}
	} else {
		for _, child := range n.children {
			if child.token == token {
				return child
			}
		}
	}
	return n.add(&node{token: token})
}

// add adds a child. Its token must be new.
func (n *node) add(child *node) *node {
	n.children = append(n.children, child)
	if n.indices != nil {
		n.indices[child.token] = len(n.children) - 1
	} else if len(n.children) > manyChildren {
		n.indices = make(map[string]int, 2*manyChildren)
		for i, c := range n.children {
			n.indices[c.token] = i
		}
	}
	return child
}

// find returns the index of the named child, or -1.
func (n *node) find(name []byte) int {
	if n.indices != nil {
		if i, ok := n.indices[string(name)]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(n.children, func(c *node) bool { return c.token == string(name) })
}

// replace sets the new value of the place. Nothing else needs to create it.
func (n *node) replace(value json.RawMessage) { n.set, n.absent = value, false }

// below reports whether there are edits inside the value.
func (n *node) below() bool { return len(n.children) > 0 || len(n.appended) > 0 || n.list != nil }

// edited reports whether there are edits at the place or inside.
func (n *node) edited() bool { return n.below() || n.removed || n.set != nil }

// grows reports whether the only edits are elements appended to a list.
func (n *node) grows() bool {
	return len(n.appended) > 0 && len(n.children) == 0 && n.list == nil && n.set == nil && !n.removed && n.written == nil && !n.whole.known()
}

// fills reports whether the edits inside need a container. All but removals do.
func (n *node) fills() bool {
	return n.absent || len(n.appended) > 0 || slices.ContainsFunc(n.children, func(c *node) bool { return c.set != nil || c.fills() })
}

// gone reports whether nothing is left of the place.
func (n *node) gone() bool { return n.removed && !n.fills() }

// An element is a child of a list.
type element struct {
	index int
	*node
}

// elements returns the children as list elements, ordered by index. It omits children
// whose token is not an index.
func (n *node) elements() []element {
	if len(n.children) == 0 {
		return nil
	}
	out := make([]element, 0, len(n.children))
	for _, child := range n.children {
		if i, ok := rawjson.Index(child.token); ok {
			out = append(out, element{i, child})
		}
	}
	slices.SortFunc(out, func(a, b element) int { return a.index - b.index })
	return out
}

// whole is a value with the plan that encodes it, the plan of its type if nil.
type whole struct {
	plan  *plan
	value reflect.Value
}

// reads reports whether the value decodes itself.
func (w whole) reads() bool {
	p := w.plan
	for p != nil && p.kind == pointer {
		p = p.elem
	}
	return p != nil && p.reads
}

func (w whole) known() bool { return w.plan != nil || w.value.IsValid() }

func (w whole) encode() (json.RawMessage, error) {
	if w.plan == nil {
		return appendTree(nil, w.value.Interface(), 0)
	}
	return w.plan.encode(w.value)
}
