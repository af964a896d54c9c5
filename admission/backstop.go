// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Backstop is a ValidatingAdmissionPolicy that refuses what a mutating webhook should
// have changed and did not. Once it is in force the webhook fails open: an outage then
// blocks only what would have been changed, and nothing passes as it is that should not.
// It has the webhook's rules and selectors.
//
// What the policy reads is one object in each namespace. Its policy is registered after
// the objects, and goes before them. An object that is missing in a namespace refuses
// nothing there.
type Backstop struct {
	// Param is the kind of the objects, one of the core group: a policy refuses everything
	// that it is for while the API server does not know the kind, and after a start an API
	// server knows no kinds of CustomResourceDefinitions for up to 30 seconds. It follows all
	// objects of the kind, so take one of which there are few. ParamName is the name of the
	// object in each namespace.
	Param     admissionregistrationv1.ParamKind
	ParamName string
	// MatchConditions, Variables and Validations are those of the policy.
	MatchConditions []admissionregistrationv1.MatchCondition
	Variables       []admissionregistrationv1.Variable
	Validations     []admissionregistrationv1.Validation
	// Ready is nil once the objects are there, otherwise it says what is missing: the
	// policy is not registered before. It must be fast. Nil means that they are.
	Ready func() error
	// Disabled means that there shall be none, and that one which was registered before is
	// removed.
	Disabled bool
}

// validate reports all problems. Expressions are not compiled.
func (b *Backstop) validate() error {
	if b == nil || b.Disabled {
		return nil
	}
	var errs []error
	if b.Param.APIVersion == "" || b.Param.Kind == "" || b.ParamName == "" {
		errs = append(errs, errors.New("param: apiVersion, kind and name are needed"))
	} else if b.Param.APIVersion != corev1.SchemeGroupVersion.String() {
		errs = append(errs, fmt.Errorf("param: %s is not of the core group, %s: while an API server starts, such a policy refuses everything",
			b.Param.APIVersion, corev1.SchemeGroupVersion))
	}
	if len(b.Validations) == 0 {
		errs = append(errs, errors.New("validations are missing"))
	}
	return errors.Join(errs...)
}
