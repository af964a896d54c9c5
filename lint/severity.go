// SPDX-License-Identifier: Apache-2.0

package lint

import "slices"

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Error: the API server refuses the object, or it breaks or can wedge a cluster.
	Error Severity = "error"
	// Warning: a known cause of incidents.
	Warning Severity = "warning"
	// Info: a hint, or a fact to be aware of.
	Info Severity = "info"
)

// Severities are all of them, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast tells whether s is as bad as other, or worse.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(Severities(), s) <= slices.Index(Severities(), other)
}
