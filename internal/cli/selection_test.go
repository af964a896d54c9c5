// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

func TestSelects(t *testing.T) {
	for _, tc := range []struct {
		name, selection string
		want            string // of a, b and c
	}{
		{"everything", "*", "abc"},
		{"nothing", "", ""},
		{"one", "b", "b"},
		{"all but one", "*,-b", "ac"},
		{"the order does not matter", "-b,*", "ac"},
		{"only what is not wanted", "-b", ""},
		{"one and everything", "b,*", "abc"},
		{"the first that names it counts", "b,-b", "b"},
		{"the first that names it counts, the other way round", "-b,b,*", "ac"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var selection []string
			if tc.selection != "" {
				selection = strings.Split(tc.selection, ",")
			}
			got := ""
			for _, name := range []string{"a", "b", "c"} {
				if Selects(selection, name) {
					got += name
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
