// SPDX-License-Identifier: Apache-2.0

package lint

import "slices"

// Severity is the severity of a finding.
type Severity string

const (
	// Error means that the API server refuses the object, or that it breaks or can wedge a cluster.
	Error Severity = "error"
	// Warning is a known cause of incidents.
	Warning Severity = "warning"
	// Info is a hint, or a fact to be aware of.
	Info Severity = "info"
)

// Severities returns all severities, most severe first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether s is at least as severe as other.
func (s Severity) AtLeast(other Severity) bool {
	return slices.Index(Severities(), s) <= slices.Index(Severities(), other)
}
