// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"slices"
	"sort"

	"github.com/go-json-experiment/json/jsontext"
)

// An arrangement tells where the elements of a list are in the end: the first ones
// keep their index, the last ones their distance from the end, and what is between
// is in the given order.
type arrangement struct {
	length      int // of the list before
	first, last int
	// order holds the index before of each element that stays, and ^i for the
	// appended[i] of the node.
	order []int
	// stay are the positions in order of the elements that need not be moved.
	stay []int
}

func newArrangement(length, first, last int, order []int) *arrangement {
	a := &arrangement{length: length, first: first, last: last, order: order}
	var kept, at []int
	for i, from := range order {
		if from >= 0 {
			kept, at = append(kept, from), append(at, i)
		}
	}
	for _, i := range increasing(kept) {
		a.stay = append(a.stay, at[i])
	}
	return a
}

// moves is the number of elements that stay in the list and have to be moved.
func (a *arrangement) moves() int {
	n := -len(a.stay)
	for _, from := range a.order {
		if from >= 0 {
			n++
		}
	}
	return n
}

// apply arranges the elements of the list.
func (a *arrangement) apply(values, added []jsontext.Value) []jsontext.Value {
	out := make([]jsontext.Value, 0, a.first+len(a.order)+a.last)
	out = append(out, values[:a.first]...)
	for _, from := range a.order {
		if from >= 0 {
			out = append(out, values[from])
		} else {
			out = append(out, added[^from])
		}
	}
	return append(out, values[len(values)-a.last:]...)
}

// arrange emits the moves and additions, from the front to the back, in a list
// from which what does not stay was removed before.
//
// At every moment the list holds, in this order: the elements that are in place;
// the ones that are still to come but stay; and, at their old place among all of
// these, the ones that wait to be moved. An element goes right behind the one
// that precedes it in the end.
func (e *emitter) arrange(a *arrangement, added []jsontext.Value) {
	var waiting counter
	stay := a.stay
	for i, from := range a.order {
		if len(stay) > 0 && stay[0] == i {
			stay = stay[1:]
		} else if from >= 0 {
			if waiting == nil {
				waiting = make(counter, a.length+1)
			}
			waiting.add(from, 1)
		}
	}
	length := a.first + a.last + len(a.order) - len(added)
	passed, before := 0, 0 // elements that stay: those that were passed, and the last one's old index
	for i, from := range a.order {
		switch {
		case passed < len(a.stay) && a.stay[passed] == i:
			passed++
			before = from
		case from < 0:
			token := "-"
			if to := a.first + i + waiting.below(before); to < length {
				token = itoa(to)
			}
			length++
			e.below(token, func() { e.emit(Operation{Op: Add, Value: added[^from]}) })
		default:
			// In front of it stand what waits there, and either all that
			// precedes the first of the passed that stood behind it, or all that is
			// in place and the ones not yet passed that stood before it.
			stood := sort.Search(len(a.stay), func(k int) bool { return a.order[a.stay[k]] > from })
			at := a.first + waiting.below(from)
			if stood < passed {
				at += a.stay[stood]
			} else {
				at += i + stood - passed
			}
			waiting.add(from, -1)
			e.move(at, a.first+i+waiting.below(before))
		}
	}
}

func (e *emitter) move(from, to int) {
	source := append(slices.Clone(e.path), '/')
	source = append(source, itoa(from)...)
	e.below(itoa(to), func() { e.emit(Operation{Op: Move, From: string(source)}) })
}

// A counter counts numbers by size, in logarithmic time (a Fenwick tree).
type counter []int

func (c counter) add(i, n int) {
	for i++; i < len(c); i += i & -i {
		c[i] += n
	}
}

// below returns how many numbers below i are counted.
func (c counter) below(i int) int {
	n := 0
	for i = min(i, len(c)-1); i > 0; i &= i - 1 {
		n += c[i]
	}
	return n
}

// increasing returns the positions of a longest subsequence that increases
// strictly.
func increasing(sequence []int) []int {
	if sorted(sequence) {
		out := make([]int, len(sequence))
		for i := range out {
			out[i] = i
		}
		return out
	}
	// ends[k] is the position of the least number that ends an increasing
	// subsequence of length k+1.
	var ends []int
	previous := make([]int, len(sequence))
	for i, n := range sequence {
		k := sort.Search(len(ends), func(k int) bool { return sequence[ends[k]] >= n })
		previous[i] = -1
		if k > 0 {
			previous[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	out := ends
	if len(ends) > 0 {
		i := ends[len(ends)-1]
		for k := len(ends) - 1; k >= 0; k-- {
			out[k], i = i, previous[i]
		}
	}
	return out
}

func sorted(sequence []int) bool {
	for i := 1; i < len(sequence); i++ {
		if sequence[i] <= sequence[i-1] {
			return false
		}
	}
	return true
}
