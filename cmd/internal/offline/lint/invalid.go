// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/sallyport-io/sallyport/admission"
)

func invalid() Rule {
	return Rule{
		ID: "invalid", Group: groupIdentity, Severities: []Severity{Error, Warning}, Source: fromAPI,
		What: "Policies are Fail or Ignore, Exact or Equivalent, Never or IfNeeded; operations are in capitals; selectors parse; rules name operations, groups, versions and resources that do not overlap.",
		Why:  "The API server refuses the whole configuration, or, without rules, never calls the webhook.",
		Fix:  "Correct the field.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				for _, fieldError := range w.fieldErrors() {
					field := strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(fieldError.Field)
					severity := Error
					if fieldError.Field == "rules" && len(w.Rules) == 0 {
						severity = Warning // the API server accepts it
					}
					c.webhook(w, severity, field, "%s: %v", fieldError.Field, fieldError.Err)
				}
			}
		},
	}
}

// ofOtherRules are fields with rules of their own, and fields that a configuration does
// not have.
var ofOtherRules = []string{"name", "path", "handler", "timeoutSeconds", "sideEffects", "reviewVersions", "backstop"}

// fieldErrors returns the errors of the API server for the fields of an entry.
func (w *webhook) fieldErrors() []*admission.FieldError {
	definition := admission.Webhook{
		Name: w.Name, Type: admission.TypeValidating, Rules: w.Rules,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		MatchPolicy: ptr.Deref(w.MatchPolicy, ""), FailurePolicy: ptr.Deref(w.FailurePolicy, ""), ReinvocationPolicy: ptr.Deref(w.ReinvocationPolicy, ""),
	}
	if w.config.mutating {
		definition.Type = admission.TypeMutating
	}
	var out []*admission.FieldError
	add := func(err error) {
		var fieldError *admission.FieldError
		if errors.As(err, &fieldError) && !slices.Contains(ofOtherRules, fieldError.Field) {
			out = append(out, fieldError)
		}
	}
	if joined, ok := definition.Problems().(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			add(err)
		}
	}
	// An explicitly empty value is not a default.
	for field, empty := range map[string]bool{
		"failurePolicy":      w.FailurePolicy != nil && *w.FailurePolicy == "",
		"matchPolicy":        w.MatchPolicy != nil && *w.MatchPolicy == "",
		"reinvocationPolicy": w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == "",
	} {
		if empty {
			add(&admission.FieldError{Webhook: w.Name, Field: field, Err: errors.New("is empty: leave it out for the default")})
		}
	}
	slices.SortStableFunc(out, func(a, b *admission.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return out
}
