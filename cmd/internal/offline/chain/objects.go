// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// objects are the objects that decide on requests, with the API server's defaults, sorted by name.
type objects struct {
	mutatingPolicies   []entry[admissionregistrationv1.MutatingAdmissionPolicy]
	mutatingBindings   []entry[admissionregistrationv1.MutatingAdmissionPolicyBinding]
	validatingPolicies []entry[admissionregistrationv1.ValidatingAdmissionPolicy]
	validatingBindings []entry[admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	mutatingWebhooks   []entry[admissionregistrationv1.MutatingWebhookConfiguration]
	validatingWebhooks []entry[admissionregistrationv1.ValidatingWebhookConfiguration]
}

// entry is a decoded object.
type entry[T any] struct {
	*manifest.Object
	value *T
}

// read decodes the objects. Kinds that decide nothing are left out. The error reports all problems.
func (o *objects) read(all []*manifest.Object) error {
	return errors.Join(
		take(all, &o.mutatingPolicies, func(p *admissionregistrationv1.MutatingAdmissionPolicy) error {
			defaultFailurePolicy(&p.Spec.FailurePolicy)
			return defaultConstraints(p.Spec.MatchConstraints)
		}),
		take(all, &o.mutatingBindings, func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) error {
			defaultMatchResources(b.Spec.MatchResources)
			return checkParamRef(b.Spec.ParamRef)
		}),
		take(all, &o.validatingPolicies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) error {
			defaultFailurePolicy(&p.Spec.FailurePolicy)
			return defaultConstraints(p.Spec.MatchConstraints)
		}),
		take(all, &o.validatingBindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) error {
			defaultMatchResources(b.Spec.MatchResources)
			if len(b.Spec.ValidationActions) == 0 {
				return errors.New("validationActions is required: Deny, Warn or Audit")
			}
			return checkParamRef(b.Spec.ParamRef)
		}),
		take(all, &o.mutatingWebhooks, func(c *admissionregistrationv1.MutatingWebhookConfiguration) error {
			for i := range c.Webhooks {
				w := &c.Webhooks[i]
				defaultFailurePolicy(&w.FailurePolicy)
				defaultWebhook(&w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules)
				if w.ReinvocationPolicy == nil {
					w.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
				}
			}
			return nil
		}),
		take(all, &o.validatingWebhooks, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
			for i := range c.Webhooks {
				w := &c.Webhooks[i]
				defaultFailurePolicy(&w.FailurePolicy)
				defaultWebhook(&w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules)
			}
			return nil
		}),
	)
}

// take decodes the objects of kind T, and prepares each.
func take[T any](all []*manifest.Object, into *[]entry[T], prepare func(*T) error) error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", *new(T)), "v1.")
	var errs []error
	for _, o := range all {
		if o.GVK() != admissionregistrationv1.SchemeGroupVersion.WithKind(kind) {
			continue
		}
		if i := slices.IndexFunc(*into, func(e entry[T]) bool { return e.Name == o.Name }); i >= 0 {
			errs = append(errs, o.ErrorAt("/metadata/name", o.Title()+" was given before, at "+(*into)[i].At()+": give it once"))
			continue
		}
		value := new(T)
		if err := o.Decode(value); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := prepare(value); err != nil {
			errs = append(errs, o.ErrorAt("/spec", o.Title()+": "+err.Error()))
			continue
		}
		*into = append(*into, entry[T]{o, value})
	}
	slices.SortStableFunc(*into, func(a, b entry[T]) int { return strings.Compare(a.Name, b.Name) })
	return errors.Join(errs...)
}

// The API server's defaults: k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go.

func defaultFailurePolicy(p **admissionregistrationv1.FailurePolicyType) {
	if *p == nil {
		*p = new(admissionregistrationv1.Fail)
	}
}

func defaultMatching(policy **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector) {
	if *policy == nil {
		*policy = new(admissionregistrationv1.Equivalent)
	}
	if *namespaces == nil {
		*namespaces = &metav1.LabelSelector{}
	}
	if *objects == nil {
		*objects = &metav1.LabelSelector{}
	}
}

func defaultScope(rule *admissionregistrationv1.Rule) {
	if rule.Scope == nil {
		rule.Scope = new(admissionregistrationv1.AllScopes)
	}
}

func defaultMatchResources(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	defaultMatching(&m.MatchPolicy, &m.NamespaceSelector, &m.ObjectSelector)
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			defaultScope(&rules[i].Rule)
		}
	}
}

func defaultConstraints(m *admissionregistrationv1.MatchResources) error {
	if m == nil {
		return errors.New("matchConstraints is required")
	}
	defaultMatchResources(m)
	return nil
}

func defaultWebhook(policy **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, seconds **int32, rules []admissionregistrationv1.RuleWithOperations) {
	defaultMatching(policy, namespaces, objects)
	if *seconds == nil {
		*seconds = new(int32(10))
	}
	for i := range rules {
		defaultScope(&rules[i].Rule)
	}
}

func checkParamRef(ref *admissionregistrationv1.ParamRef) error {
	if ref != nil && ref.ParameterNotFoundAction == nil {
		return errors.New("paramRef.parameterNotFoundAction is required: Allow or Deny")
	}
	return nil
}

// noteBindings returns a note for each binding without policy, and for each policy without binding.
func (o *objects) noteBindings() []string {
	return slices.Concat(
		unbound(o.mutatingPolicies, o.mutatingBindings, func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
		unbound(o.validatingPolicies, o.validatingBindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
	)
}

func unbound[P, B any](policies []entry[P], bindings []entry[B], policyOf func(*B) string) []string {
	var notes []string
	for _, b := range bindings {
		if !slices.ContainsFunc(policies, func(p entry[P]) bool { return p.Name == policyOf(b.value) }) {
			notes = append(notes, b.Title()+" has no effect: there is no policy "+policyOf(b.value))
		}
	}
	for _, p := range policies {
		if !slices.ContainsFunc(bindings, func(b entry[B]) bool { return p.Name == policyOf(b.value) }) {
			notes = append(notes, p.Title()+" has no effect: it has no binding")
		}
	}
	return notes
}
