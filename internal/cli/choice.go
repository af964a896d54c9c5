// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of package sallyport and of cmd/sallyport share.
package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Choice reports a value of a flag that is none of the choices.
func Choice(flag, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: choose %s", flag, value, OneOf(choices))
}

// OneOf lists choices, for people: "a, b or c".
func OneOf(choices []string) string {
	if len(choices) < 2 {
		return strings.Join(choices, "")
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}
