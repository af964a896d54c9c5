// SPDX-License-Identifier: Apache-2.0

package author

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode says how the webhook treats authors who may not create pods.
type Mode string

const (
	// Enforce refuses the object. It also refuses every write while authorization
	// cannot be checked.
	Enforce Mode = "enforce"
	// Warn tells the author and admits it.
	Warn Mode = "warn"
	// Off skips the authorization check.
	Off Mode = "off"
)

// Modes are all valid modes.
var Modes = []string{string(Enforce), string(Warn), string(Off)}

// Validate reports an unknown mode.
func (m Mode) Validate() error {
	if slices.Contains(Modes, string(m)) {
		return nil
	}
	return field.NotSupported(field.NewPath("authorizeAuthors"), string(m), Modes)
}

// FailurePolicy returns the webhook's failure policy for the mode.
func (m Mode) FailurePolicy() admissionregistrationv1.FailurePolicyType {
	if m == Enforce {
		return admissionregistrationv1.Fail
	}
	return admissionregistrationv1.Ignore
}
