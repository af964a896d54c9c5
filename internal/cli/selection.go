// SPDX-License-Identifier: Apache-2.0

package cli

import "slices"

// Selects reports whether a selection includes a name: "foo" includes foo, "-foo" excludes
// it, "*" includes all names that are not listed. The first entry for a name counts. These
// are the rules of --controllers of kube-controller-manager.
func Selects(selection []string, name string) bool {
	for _, entry := range selection {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return slices.Contains(selection, "*")
}
