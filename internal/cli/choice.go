// SPDX-License-Identifier: Apache-2.0

// Package cli contains helpers for the commands of package sallyport and cmd/sallyport.
package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Choice returns an error if the value of a flag is not one of the choices.
func Choice(flag, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: choose %s", flag, value, OneOf(choices))
}

// OneOf formats choices for messages: "a, b or c".
func OneOf(choices []string) string {
	if len(choices) < 2 {
		return strings.Join(choices, "")
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}
