// SPDX-License-Identifier: Apache-2.0

//go:build !race

package jsonpatch

// cases is how many random cases each property of Diff is tried with.
const cases = 10_000
