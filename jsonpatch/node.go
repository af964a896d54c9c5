// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/rawjson"
)

// A node is a place in the document that is edited, or on the way to one.
type node struct {
	token    string
	children []*node          // in the order they were first named
	indices  map[string]int   // of the children, once they are many
	set      jsontext.Value   // takes the place of what is there
	removed  bool             // what is there goes
	appended []jsontext.Value // new elements

	// What follows is only set by Diff.

	// whole is what stands here afterwards, for a document that lacks the place.
	whole whole
	// absent: the JSON of the value before lacks the place, whatever the document
	// has. It is there afterwards.
	absent bool
	// vanishes: the place goes if the edits leave no member of it.
	vanishes bool
	// written is what the value before, which writes itself, wrote.
	written jsontext.Value
	// list describes the list that stands here, nil if none does.
	list *arrangement
}

// manyChildren is the number from which children are found by a map.
const manyChildren = 16

// at returns the child with the token; it is made if there is none.
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

// add adds a child with a token that no other has.
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

// find returns the index of the child with the name, -1 if there is none.
func (n *node) find(name []byte) int {
	if n.indices != nil {
		if i, ok := n.indices[string(name)]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(n.children, func(c *node) bool { return c.token == string(name) })
}

// replace notes the new value of the place, which need not be made any more.
func (n *node) replace(value jsontext.Value) { n.set, n.absent = value, false }

// below tells whether there are edits inside the value of the place.
func (n *node) below() bool { return len(n.children) > 0 || len(n.appended) > 0 || n.list != nil }

// edited tells whether there are edits at the place or inside.
func (n *node) edited() bool { return n.below() || n.removed || n.set != nil }

// grows tells whether the edits are elements that are appended to a list, and nothing else.
func (n *node) grows() bool {
	return len(n.appended) > 0 && len(n.children) == 0 && n.list == nil && n.set == nil && !n.removed && n.written == nil && !n.whole.known()
}

// fills tells whether the edits inside need something that they can be made in:
// all but removals do.
func (n *node) fills() bool {
	return n.absent || len(n.appended) > 0 || slices.ContainsFunc(n.children, func(c *node) bool { return c.set != nil || c.fills() })
}

// gone tells whether nothing is left of the place.
func (n *node) gone() bool { return n.removed && !n.fills() }

// An element is a child of a list.
type element struct {
	index int
	*node
}

// elements returns the children as elements of a list, by index; those that are
// named by no index are left out.
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

// whole is a value with the plan to write it, that of its type if nil.
type whole struct {
	plan  *plan
	value reflect.Value
}

// reads tells whether the value reads itself.
func (w whole) reads() bool {
	p := w.plan
	for p != nil && p.kind == pointer {
		p = p.elem
	}
	return p != nil && p.reads
}

func (w whole) known() bool { return w.plan != nil || w.value.IsValid() }

func (w whole) encode() (jsontext.Value, error) {
	if w.plan == nil {
		return appendTree(nil, w.value.Interface(), 0)
	}
	return w.plan.encode(w.value)
}
