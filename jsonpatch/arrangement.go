// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"slices"
	"sort"
)

// An arrangement describes the final order of a list. The first elements keep their
// index, the last ones their distance from the end, and the elements between are in the
// given order.
type arrangement struct {
	length      int // of the original list
	first, last int
	// order holds the original index of each element that stays, and ^i for appended[i]
	// of the node.
	order []int
	// stay holds the positions in order of the elements that need not move.
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

// moves returns the number of elements that stay in the list but must move.
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
func (a *arrangement) apply(values, added []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, 0, a.first+len(a.order)+a.last)
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

// arrange emits the moves and additions from front to back. Removed elements must
// already be gone from the list.
//
// At every moment the list holds, in this order: the elements already in place, then
// the remaining elements that need no move. Elements waiting to be moved sit among
// these at their old places. Each element goes right after its final predecessor.
func (e *emitter) arrange(a *arrangement, added []json.RawMessage) {
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
	passed, before := 0, 0 // elements that stay: those passed so far, and the original index of the last of them
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
			// In front of it are the elements that wait there. Before those is either
			// everything up to the first passed element that stood behind it, or
			// everything in place plus the elements not yet passed that stood before
			// it.
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

// increasing returns the positions of a longest strictly increasing subsequence.
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
