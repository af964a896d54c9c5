// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"reflect"
	"slices"
)

// list compares two slices. Key is the member that names their elements, or "" if the
// type has none.
func (d *differ) list(p *plan, key string, before, after reflect.Value) bool {
	if before.IsNil() || after.IsNil() {
		return before.IsNil() && after.IsNil() || d.replace(p, after)
	}
	if before.Len() == after.Len() && before.Pointer() == after.Pointer() {
		return true
	}
	was, is := before.Len(), after.Len()
	if d.probing > 0 && was != is {
		return false
	}
	if d.probing == 0 && was == is && key != "" && sameNames(p.elem, key, before, after) {
		return d.inPlace(p, before, after)
	}
	first := 0
	if before.Pointer() == after.Pointer() { // the longer one has the other in it
		first = min(was, is)
	}
	for first < min(was, is) && d.probe(p.elem, before.Index(first), after.Index(first)) {
		first++
	}
	switch {
	case first == max(was, is):
		return true
	case d.probing > 0:
		return false
	case first == was:
		d.extend(p, first, after)
		return false
	case is == 0: // all elements are gone
		return d.replace(p, after)
	}
	last := 0
	for last < min(was, is)-first && d.probe(p.elem, before.Index(was-1-last), after.Index(is-1-last)) {
		last++
	}
	d.rearrange(p, before, after, first, last, d.match(&matching{
		plan:   p.elem,
		key:    key,
		before: before.Slice(first, was-last),
		after:  after.Slice(first, is-last),
	}))
	return false
}

// maxInPlace is the number of elements up to which [sameNames] compares each with all others.
const maxInPlace = 16

// sameNames reports whether two short lists of the same length have the same elements in the same
// order: each has a name that no other has.
func sameNames(elem *plan, key string, before, after reflect.Value) bool {
	if before.Len() > maxInPlace {
		return false
	}
	var names [maxInPlace]string
	for i := range before.Len() {
		was, okBefore := nameOf(elem, before.Index(i), key)
		is, okAfter := nameOf(elem, after.Index(i), key)
		if !okBefore || !okAfter || was != is || slices.Contains(names[:i], is) {
			return false
		}
		names[i] = is
	}
	return true
}

// inPlace compares elements that keep their places, without first asking which of them differ.
func (d *differ) inPlace(p *plan, before, after reflect.Value) bool {
	same := true
	for i := range before.Len() {
		b, a := before.Index(i), after.Index(i)
		d.enter(step{index: i, whole: whole{p.elem, a}})
		same = d.walk(p.elem, b, a) && same
		d.leave()
	}
	if !same {
		d.here().list = newArrangement(before.Len(), before.Len(), 0, nil)
	}
	return same
}

// extend records that elements were added behind the first ones, which stay as they are.
func (d *differ) extend(p *plan, first int, after reflect.Value) {
	n, added := d.here(), after.Len()-first
	n.list = &arrangement{length: first, first: first, order: make([]int, added)}
	n.appended = make([]json.RawMessage, added)
	for i := range added {
		value, err := p.elem.encode(after.Index(first + i))
		if err != nil {
			d.fail(err)
			return
		}
		n.appended[i], n.list.order[i] = value, ^i
	}
}

// rearrange records what happens to the elements between the equal first and last ones.
// Elements with a match stay, are edited in place and move if necessary. Elements
// without one are removed or new. Match holds the original index for each new element,
// or -1, both counted without the first ones.
func (d *differ) rearrange(p *plan, before, after reflect.Value, first, last int, match []int) {
	n := d.here()
	length := before.Len()
	stays := make([]bool, length-first-last)
	order := make([]int, len(match))
	for to, from := range match {
		if from < 0 {
			order[to] = ^len(n.appended)
			value, err := p.elem.encode(after.Index(first + to))
			if err != nil {
				d.fail(err)
				return
			}
			n.appended = append(n.appended, value)
			continue
		}
		stays[from] = true
		order[to] = first + from
		b, a := before.Index(first+from), after.Index(first+to)
		d.enter(step{index: first + from, whole: whole{p.elem, a}})
		d.walk(p.elem, b, a)
		d.leave()
	}
	for from, stay := range stays {
		if !stay {
			n.add(&node{token: itoa(first + from), removed: true})
		}
	}
	n.list = newArrangement(length, first, last, order)
}
