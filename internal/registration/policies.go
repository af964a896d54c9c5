// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/kube/foreign"
	"github.com/sallyport-io/sallyport/internal/registration/ownership"
)

// backstopOf returns the one webhook with a backstop, or nil. There cannot be two, because the
// policy has the name of the configurations.
func backstopOf(webhooks []admission.Webhook) (*admission.Webhook, error) {
	var found *admission.Webhook
	for i := range webhooks {
		if webhooks[i].Backstop == nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("webhooks %q and %q both have a backstop: one of an application can have one", found.Name, webhooks[i].Name)
		}
		found = &webhooks[i]
	}
	return found, nil
}

// policies are the objects of a backstop; nil if there is none.
type policies struct {
	policy  *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration
	binding *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration
}

// record adds the records of their own terms to the policy and its binding.
func (p policies) record(name string, w admission.Webhook) {
	own := foreign.Webhook{Name: name, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector}
	p.binding.WithAnnotations(map[string]string{foreign.Annotation: foreign.Record([]foreign.Webhook{own})})
	own.MatchConditions = w.Backstop.MatchConditions
	p.policy.WithAnnotations(map[string]string{foreign.Annotation: foreign.Record([]foreign.Webhook{own})})
}

// buildPolicies derives the policy and its binding from the one definition with a
// backstop that is not disabled. Both have the webhook's selectors.
func buildPolicies(c Config, webhooks []admission.Webhook) (policies, error) {
	errs := []error{c.Validate()}
	w, err := backstopOf(webhooks)
	errs = append(errs, err)
	if w != nil {
		errs = append(errs, w.Problems())
	}
	if err := errors.Join(errs...); err != nil {
		return policies{}, fmt.Errorf("policy cannot be built: %w", err)
	}
	if w == nil || w.Backstop.Disabled {
		return policies{}, nil
	}
	return policies{policy: c.policy(w.Defaulted()), binding: c.binding(w.Defaulted())}, nil
}

func (c Config) policy(w admission.Webhook) *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration {
	b := w.Backstop
	spec := admissionregistrationac.ValidatingAdmissionPolicySpec().
		WithParamKind(admissionregistrationac.ParamKind().WithAPIVersion(b.Param.APIVersion).WithKind(b.Param.Kind)).
		WithMatchConstraints(matchResources(w)).
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithMatchConditions(matchConditions(b.MatchConditions)...)
	for _, v := range b.Variables {
		spec.WithVariables(admissionregistrationac.Variable().WithName(v.Name).WithExpression(v.Expression))
	}
	for _, v := range b.Validations {
		validation := admissionregistrationac.Validation().WithExpression(v.Expression)
		if v.Message != "" {
			validation.WithMessage(v.Message)
		}
		if v.MessageExpression != "" {
			validation.WithMessageExpression(v.MessageExpression)
		}
		if v.Reason != nil {
			validation.WithReason(*v.Reason)
		}
		spec.WithValidations(validation)
	}
	return admissionregistrationac.ValidatingAdmissionPolicy(c.Name).WithLabels(c.labels()).WithAnnotations(c.Annotations).
		WithOwnerReferences(c.owners()...).WithSpec(spec)
}

// binding finds the parameter by name in the namespace of the request, at a cost independent of
// other objects. A missing parameter denies nothing, because a namespace exists before its
// parameter is written.
func (c Config) binding(w admission.Webhook) *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration {
	resources := admissionregistrationac.MatchResources().WithMatchPolicy(w.MatchPolicy)
	resources.NamespaceSelector = ownership.Selector(w.NamespaceSelector)
	resources.ObjectSelector = ownership.Selector(w.ObjectSelector)
	return admissionregistrationac.ValidatingAdmissionPolicyBinding(c.Name).WithLabels(c.labels()).WithAnnotations(c.Annotations).
		WithOwnerReferences(c.owners()...).
		WithSpec(admissionregistrationac.ValidatingAdmissionPolicyBindingSpec().
			WithPolicyName(c.Name).
			WithParamRef(admissionregistrationac.ParamRef().WithName(w.Backstop.ParamName).WithParameterNotFoundAction(admissionregistrationv1.AllowAction)).
			WithMatchResources(resources).
			WithValidationActions(admissionregistrationv1.Deny))
}

func matchResources(w admission.Webhook) *admissionregistrationac.MatchResourcesApplyConfiguration {
	out := admissionregistrationac.MatchResources().WithMatchPolicy(w.MatchPolicy)
	for _, r := range rules(w.Rules) {
		named := admissionregistrationac.NamedRuleWithOperations().
			WithOperations(r.Operations...).WithAPIGroups(r.APIGroups...).WithAPIVersions(r.APIVersions...).WithResources(r.Resources...)
		named.Scope = r.Scope
		out.WithResourceRules(named)
	}
	out.NamespaceSelector = ownership.Selector(w.NamespaceSelector)
	out.ObjectSelector = ownership.Selector(w.ObjectSelector)
	return out
}

// failOpen returns the definitions with the failure policy Ignore for the webhook with a
// backstop.
func failOpen(webhooks []admission.Webhook) []admission.Webhook {
	out := slices.Clone(webhooks)
	for i := range out {
		if out[i].Backstop != nil {
			out[i].FailurePolicy = admissionregistrationv1.Ignore
		}
	}
	return out
}
