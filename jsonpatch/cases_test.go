// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"flag"
	"strconv"
	"testing"
)

// cases returns the number of random cases for each property of Diff: five times the
// flag -rapid.checks, which is 100 by default and tens of thousands in `make nightly`. With
// -short, which `make race` sets, they are a twentieth.
func cases(t *testing.T) uint64 {
	t.Helper()
	checks, err := strconv.ParseUint(flag.Lookup("rapid.checks").Value.String(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		return checks / 4
	}
	return 5 * checks
}
