// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Backstop is a ValidatingAdmissionPolicy that refuses what a mutating webhook should
// have changed and did not. Once it is in force the webhook fails open: an outage then
// blocks only what would have been changed, and nothing passes as it is that should not.
// It has the webhook's rules and selectors.
//
// What the policy reads is one object in each namespace, whose kind is defined by a
// CustomResourceDefinition. Without the definition the API server refuses everything that
// the policy is for; so the policy is registered after the definition and the objects, and
// goes before them. An object that is missing in a namespace refuses nothing there.
type Backstop struct {
	// CRD is the name of the definition, for example "poddefaultindexes.sallyport.io".
	CRD string
	// Param is the kind that it defines, and ParamName the name of the object in each
	// namespace.
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

// Validate reports every mistake at once. Expressions are not compiled.
func (b *Backstop) Validate() error {
	if b == nil || b.Disabled {
		return nil
	}
	var errs []error
	if problems := validation.IsDNS1123Subdomain(b.CRD); len(problems) > 0 || !strings.Contains(b.CRD, ".") {
		errs = append(errs, fmt.Errorf("CRD: %q: write <plural>.<group>", b.CRD))
	}
	if b.Param.APIVersion == "" || b.Param.Kind == "" || b.ParamName == "" {
		errs = append(errs, errors.New("param: apiVersion, kind and name are needed"))
	}
	if len(b.Validations) == 0 {
		errs = append(errs, errors.New("validations are missing"))
	}
	return errors.Join(errs...)
}
