// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		total  int
		wanted []int
		want   int
	}{
		"nobody":                       {10, nil, math.MaxInt},
		"enough for all":               {10, []int{5, 5}, math.MaxInt},
		"one wants more than there is": {10, []int{20}, 10},
		"the greedy one gets the rest": {10, []int{1, 20, 2}, 7},
		"two greedy ones share":        {10, []int{30, 2, 20}, 4},
		"not enough for one each":      {2, []int{1, 1, 1}, 0},
	} {
		if got := Limit(tc.total, tc.wanted); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestNobodyGetsMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(0, 100).Draw(t, "total")
		wanted := rapid.SliceOf(rapid.IntRange(0, 100)).Draw(t, "wanted")
		limit, sum, all := Limit(total, wanted), 0, 0
		for _, want := range wanted {
			sum, all = sum+min(want, limit), all+want
		}
		if sum > total || limit == math.MaxInt != (all <= total) {
			t.Fatalf("limit %d: %d of %d", limit, sum, total)
		}
	})
}
