// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

// podsEach times the checks of rapid, a hundred by default, are the cases.
const podsEach = 22
