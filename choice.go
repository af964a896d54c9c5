// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"slices"
	"strings"
)

// choice reports a value of a flag that is none of the choices.
func choice(flag, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: choose %s", flag, value, oneOf(choices))
}

// oneOf lists choices, for people: "a, b or c".
func oneOf(choices []string) string {
	if len(choices) < 2 {
		return strings.Join(choices, "")
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}
