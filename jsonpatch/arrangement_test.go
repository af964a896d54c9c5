// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestArrangeGivesTheOrderWithTheFewestMoves applies arrange's operations with the API
// server's library.
func TestArrangeGivesTheOrderWithTheFewestMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, 2).Draw(t, "first")
		last := rapid.IntRange(0, 2).Draw(t, "last")
		middle := rapid.IntRange(0, 8).Draw(t, "between")
		length := first + middle + last

		// The elements that stay, in their new order, mixed with new ones.
		order := []int{}
		for _, i := range rapid.Permutation(sequence(middle)).Draw(t, "order") {
			if rapid.IntRange(0, 3).Draw(t, "removed") > 0 {
				order = append(order, first+i)
			}
		}
		kept := slices.Clone(order)
		var added []json.RawMessage
		for range rapid.IntRange(0, 4).Draw(t, "added") {
			at := rapid.IntRange(0, len(order)).Draw(t, "at")
			order = slices.Insert(order, at, ^len(added))
			added = append(added, json.RawMessage(fmt.Sprintf(`"new %d"`, len(added))))
		}

		before := make([]json.RawMessage, length)
		for i := range before {
			before[i] = number(i)
		}
		a := newArrangement(length, first, last, order)
		want := a.apply(before, added)

		remaining := slices.Clone(before[:first])
		for i := first; i < length-last; i++ {
			if slices.Contains(order, i) {
				remaining = append(remaining, before[i])
			}
		}
		remaining = append(remaining, before[length-last:]...)

		var e emitter
		e.arrange(a, added)
		got := apply(t, string(join(remaining)), e.patch)
		if string(got) != string(join(want)) {
			t.Fatalf("%s by %s\n got %s\nwant %s", join(remaining), e.patch.AppendJSON(nil), got, join(want))
		}
		moves := 0
		for _, op := range e.patch {
			if op.Op == Move {
				moves++
			}
		}
		if least := len(kept) - longestIncreasing(kept); moves != least || a.moves() != least {
			t.Fatalf("%d moves, announced %d; %d are enough for %v", moves, a.moves(), least, order)
		}
	})
}

func TestIncreasingIsALongestIncreasingSubsequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 10).Draw(t, "numbers")
		positions := increasing(numbers)
		var got []int
		for _, i := range positions {
			got = append(got, numbers[i])
		}
		if !slices.IsSorted(positions) || !sorted(got) {
			t.Fatalf("%v at %v of %v does not increase", got, positions, numbers)
		}
		if want := longestIncreasing(numbers); len(got) != want {
			t.Fatalf("%v of %v: there is one of length %d", got, numbers, want)
		}
	})
}

// longestIncreasing tries all subsequences.
func longestIncreasing(numbers []int) int {
	longest := 0
	for set := range 1 << len(numbers) {
		var chosen []int
		for i, n := range numbers {
			if set>>i&1 == 1 {
				chosen = append(chosen, n)
			}
		}
		if sorted(chosen) {
			longest = max(longest, bits.OnesCount(uint(set)))
		}
	}
	return longest
}

func sequence(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func join(values []json.RawMessage) []byte {
	out := []byte{'['}
	for i, value := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']')
}
