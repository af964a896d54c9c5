// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Backstop is a ValidatingAdmissionPolicy that rejects objects a mutating webhook should
// have changed and did not. Once it is in force the webhook fails open: an outage then
// blocks only objects that would have been changed, and never admits one unchanged. It has
// the webhook's rules and selectors.
//
// The policy's parameter is one object in each namespace. The policy is registered after
// the objects, and removed before them. If a namespace has no such object, nothing is
// rejected there.
type Backstop struct {
	// Param is the kind of the objects, which must be in the core group: a policy rejects
	// all its requests while the API server does not know the kind, and an API server does
	// not know the kinds of CustomResourceDefinitions for up to 30 seconds after a start.
	// The API server watches all objects of the kind, so choose one with few objects.
	// ParamName is the name of the object in each namespace.
	Param     admissionregistrationv1.ParamKind
	ParamName string
	// MatchConditions, Variables and Validations are those of the policy.
	MatchConditions []admissionregistrationv1.MatchCondition
	Variables       []admissionregistrationv1.Variable
	Validations     []admissionregistrationv1.Validation
	// Ready returns nil once the objects exist, and otherwise what is missing. The policy
	// is not registered until then. It must be fast. A nil Ready means that they exist.
	Ready func() error
	// Disabled means that no policy is desired, and that a registered one is removed.
	Disabled bool
}

// validate reports all problems. Expressions are not compiled.
func (b *Backstop) validate() error {
	if b == nil || b.Disabled {
		return nil
	}
	var errs []error
	if b.Param.APIVersion == "" || b.Param.Kind == "" || b.ParamName == "" {
		errs = append(errs, errors.New("param: apiVersion, kind and name are required"))
	} else if b.Param.APIVersion != corev1.SchemeGroupVersion.String() {
		errs = append(errs, fmt.Errorf("param: %s is not in the core group, %s: while an API server starts, such a policy rejects everything",
			b.Param.APIVersion, corev1.SchemeGroupVersion))
	}
	if len(b.Validations) == 0 {
		errs = append(errs, errors.New("validations are required"))
	}
	return errors.Join(errs...)
}
