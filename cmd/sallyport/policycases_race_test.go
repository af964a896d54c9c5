// SPDX-License-Identifier: Apache-2.0

//go:build race

package main

// podsEach times the checks of rapid, a hundred by default, are the cases: fewer under
// the race detector, which is ten times slower and looks for something else.
const podsEach = 2
