// SPDX-License-Identifier: Apache-2.0

package lint

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

// policy is a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy.
type policy struct {
	*Object
	mutating      bool
	failurePolicy *admissionregistrationv1.FailurePolicyType
	constraints   *admissionregistrationv1.MatchResources
	conditions    []admissionregistrationv1.MatchCondition
	params        bool
	reinvocation  admissionregistrationv1.ReinvocationPolicyType
	foreign       []foreign.Term // see the rule foreign-terms
	validating    *admissionregistrationv1.ValidatingAdmissionPolicySpec
	mutation      *admissionregistrationv1.MutatingAdmissionPolicySpec
}

// policyBinding defines where a policy applies.
type policyBinding struct {
	*Object
	mutating bool
	policy   string
	match    *admissionregistrationv1.MatchResources
	actions  []admissionregistrationv1.ValidationAction
	paramRef *admissionregistrationv1.ParamRef
	foreign  []foreign.Term
}

func (in *Inventory) addMutatingPolicy(o *Object) error {
	t, err := read[admissionregistrationv1.MutatingAdmissionPolicy](o)
	if err != nil {
		return err
	}
	spec := t.value.Spec
	in.policies = append(in.policies, &policy{Object: o, mutating: true, failurePolicy: spec.FailurePolicy, constraints: spec.MatchConstraints,
		conditions: spec.MatchConditions, params: spec.ParamKind != nil, reinvocation: spec.ReinvocationPolicy, mutation: &spec})
	return nil
}

func (in *Inventory) addValidatingPolicy(o *Object) error {
	t, err := read[admissionregistrationv1.ValidatingAdmissionPolicy](o)
	if err != nil {
		return err
	}
	spec := t.value.Spec
	terms, _ := foreign.PolicyTerms(&t.value, foreign.Manager)
	in.policies = append(in.policies, &policy{Object: o, failurePolicy: spec.FailurePolicy, constraints: spec.MatchConstraints,
		conditions: spec.MatchConditions, params: spec.ParamKind != nil, foreign: terms, validating: &spec})
	return nil
}

func (in *Inventory) addMutatingBinding(o *Object) error {
	t, err := read[admissionregistrationv1.MutatingAdmissionPolicyBinding](o)
	if err != nil {
		return err
	}
	in.bindings = append(in.bindings, &policyBinding{Object: o, mutating: true, policy: t.value.Spec.PolicyName, match: t.value.Spec.MatchResources, paramRef: t.value.Spec.ParamRef})
	return nil
}

func (in *Inventory) addValidatingBinding(o *Object) error {
	t, err := read[admissionregistrationv1.ValidatingAdmissionPolicyBinding](o)
	if err != nil {
		return err
	}
	terms, _ := foreign.BindingTerms(&t.value, foreign.Manager)
	in.bindings = append(in.bindings, &policyBinding{Object: o, policy: t.value.Spec.PolicyName, match: t.value.Spec.MatchResources, actions: t.value.Spec.ValidationActions, paramRef: t.value.Spec.ParamRef, foreign: terms})
	return nil
}
