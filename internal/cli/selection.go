// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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

// ValidateSelection returns an error for entries that select nothing.
func ValidateSelection(flag string, selection, names []string) error {
	var errs []error
	for _, entry := range selection {
		if entry != "*" && !slices.Contains(names, strings.TrimPrefix(entry, "-")) {
			errs = append(errs, fmt.Errorf("--%s: there is no %q; choose among %s", flag, strings.TrimPrefix(entry, "-"), OneOf(names)))
		}
	}
	return errors.Join(errs...)
}
