// SPDX-License-Identifier: Apache-2.0

// Package panics describes what handlers panicked with, for the log.
package panics

import (
	"fmt"
	"runtime"
)

// Describe returns the name of the webhook, if the panic has it, and the text of the
// panic. It omits the value if that may contain parts of an object, unless the handler has
// hidden them.
func Describe(value any) (webhook, text string) {
	if named, ok := value.(interface{ Panicked() (webhook, text string) }); ok {
		return named.Panicked()
	}
	if err, ok := value.(runtime.Error); ok {
		return "", err.Error()
	}
	return "", fmt.Sprintf("value of type %T", value)
}
