// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"testing"
)

func TestLinesFarFromAChangeAreFolded(t *testing.T) {
	var rows []Row
	for i := range 30 {
		rows = append(rows, Row{Before: "x", After: "x", Removed: i == 15})
	}
	folded := Fold(rows)
	if len(folded) != 2*around+3 || folded[0].Folded != 12 || folded[len(folded)-1].Folded != 11 {
		t.Errorf("%d rows, %+v", len(folded), folded)
	}
	if got := Fold(rows[:10]); len(got) != 1 || got[0].Folded != 10 {
		t.Errorf("%+v", got)
	}
}

// TestAddressesOfTheUserAreNoMarkup checks what of the address is on the page.
