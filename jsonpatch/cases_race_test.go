// SPDX-License-Identifier: Apache-2.0

//go:build race

package jsonpatch

// cases is how many random cases each property of Diff is tried with: fewer under
// the race detector, which is ten times slower and looks for something else.
const cases = 500
