// SPDX-License-Identifier: Apache-2.0

// Package share divides what is limited for a whole process among namespaces, so that no tenant
// takes all of it.
package share

import (
	"math"
	"slices"
)

// Limit returns how many each may have so that all together have at most total: those who want fewer
// get what they want, and the others the same number each (max-min fairness). It is [math.MaxInt] if
// there is enough for all.
func Limit(total int, wanted []int) int {
	sorted := slices.Sorted(slices.Values(wanted))
	for i, want := range sorted {
		if fair := total / (len(sorted) - i); want > fair {
			return fair
		}
		total -= want
	}
	return math.MaxInt
}
