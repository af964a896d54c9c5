// SPDX-License-Identifier: Apache-2.0

package author

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode says what becomes of an object whose author may not create pods.
type Mode string

// The modes.
const (
	// Enforce refuses the object, and refuses all that are written while nobody can be
	// asked.
	Enforce Mode = "enforce"
	// Warn tells the author and admits it.
	Warn Mode = "warn"
	// Off asks nobody.
	Off Mode = "off"
)

// Modes are all there are.
var Modes = []string{string(Enforce), string(Warn), string(Off)}

// Validate reports a mode that there is not.
func (m Mode) Validate() error {
	if slices.Contains(Modes, string(m)) {
		return nil
	}
	return field.NotSupported(field.NewPath("authorizeAuthors"), string(m), Modes)
}

// FailurePolicy is what becomes of an object while the webhook does not answer.
func (m Mode) FailurePolicy() admissionregistrationv1.FailurePolicyType {
	if m == Enforce {
		return admissionregistrationv1.Fail
	}
	return admissionregistrationv1.Ignore
}
