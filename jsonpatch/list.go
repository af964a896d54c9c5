// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "reflect"

// list compares two slices. Key is the member that names their elements, if the
// type says so.
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
	first := 0
	for first < min(was, is) && d.probe(p.elem, before.Index(first), after.Index(first)) {
		first++
	}
	switch {
	case first == max(was, is):
		return true
	case d.probing > 0:
		return false
	case is == 0: // all elements went
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

// rearrange notes what becomes of the elements between the first and last ones,
// which are the same: the elements before that have a match stay, are edited in
// place and moved if they have to; the others go; what has no match is new. Match
// holds the index before for each element after, both without the first ones, or
// -1.
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
