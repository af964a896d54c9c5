// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Selects tells whether a selection has a name in it: "foo" takes it in, "-foo" leaves
// it out, "*" takes in what is not named. The first entry that names it counts. These
// are the rules of --controllers of Kubernetes' controller manager.
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

// ValidateSelection reports entries that select nothing.
func ValidateSelection(flag string, selection, names []string) error {
	var errs []error
	for _, entry := range selection {
		if entry != "*" && !slices.Contains(names, strings.TrimPrefix(entry, "-")) {
			errs = append(errs, fmt.Errorf("--%s: there is no %q; choose among %s", flag, strings.TrimPrefix(entry, "-"), OneOf(names)))
		}
	}
	return errors.Join(errs...)
}
