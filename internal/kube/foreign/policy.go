// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields that narrow a policy or its binding, besides selectors and match conditions.
const (
	ExcludeResourceRules = "excludeResourceRules"
	ResourceRules        = "resourceRules" // of a binding
)

// OfPolicy returns what narrows a policy, under its name.
func OfPolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy) Webhook {
	of := cmp.Or(p.Spec.MatchConstraints, &admissionregistrationv1.MatchResources{})
	return Webhook{p.Name, of.NamespaceSelector, of.ObjectSelector, p.Spec.MatchConditions}
}

// OfBinding returns what narrows a binding, under its name.
func OfBinding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) Webhook {
	of := cmp.Or(b.Spec.MatchResources, &admissionregistrationv1.MatchResources{})
	return Webhook{b.Name, of.NamespaceSelector, of.ObjectSelector, nil}
}

// PolicyTerms returns the foreign terms of a policy that a server registers, as [Terms] does for webhooks.
func PolicyTerms(p *admissionregistrationv1.ValidatingAdmissionPolicy, manager string) ([]Term, bool) {
	return narrowing(p.ObjectMeta, "policy", "matchConstraints", OfPolicy(p), p.Spec.MatchConstraints, manager)
}

// BindingTerms is [PolicyTerms] for the binding of a policy, which a server registers without resource rules.
func BindingTerms(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, manager string) ([]Term, bool) {
	return narrowing(b.ObjectMeta, "binding", "matchResources", OfBinding(b), b.Spec.MatchResources, manager)
}

// narrowing compares an object with its own record. Resources may be nil; they are atomic, so their managers
// are those of all of them.
func narrowing(of metav1.ObjectMeta, kind, within string, observed Webhook, resources *admissionregistrationv1.MatchResources, manager string) ([]Term, bool) {
	record, ok := Read(of.Annotations)
	own, ours := record[observed.Name]
	if !ok || !ours {
		return nil, false
	}
	var out []Term
	add := func(field, text string, path ...string) {
		out = append(out, Term{Kind: kind, Webhook: observed.Name, Field: field, Text: text, Managers: managersAt(of, manager, path...)})
	}
	for _, f := range []struct {
		field    string
		observed *metav1.LabelSelector
		own      string
	}{{NamespaceSelector, observed.NamespaceSelector, own.NamespaceSelector}, {ObjectSelector, observed.ObjectSelector, own.ObjectSelector}} {
		registered, err := metav1.ParseToLabelSelector(f.own)
		if err != nil {
			registered = nil
		}
		for _, term := range added(f.observed, registered) {
			add(f.field, term, "f:spec", "f:"+within)
		}
	}
	for _, m := range observed.MatchConditions {
		if !slices.Contains(own.MatchConditions, m.Name) {
			add(MatchConditions, m.Name, "f:spec", "f:"+MatchConditions, `k:{"name":"`+m.Name+`"}`)
		}
	}
	if resources != nil && len(resources.ExcludeResourceRules) > 0 {
		add(ExcludeResourceRules, named(resources.ExcludeResourceRules), "f:spec", "f:"+within)
	}
	if resources != nil && kind == "binding" && len(resources.ResourceRules) > 0 {
		add(ResourceRules, named(resources.ResourceRules), "f:spec", "f:"+within)
	}
	return out, true
}

// named returns the resources of rules.
func named(rules []admissionregistrationv1.NamedRuleWithOperations) string {
	var out []string
	for i := range rules {
		out = append(out, rules[i].Resources...)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}
