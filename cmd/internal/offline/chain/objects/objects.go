// SPDX-License-Identifier: Apache-2.0

// Package objects has the objects that decide on requests: policies, bindings and webhook configurations.
package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/policyfields"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Objects are the objects that decide on requests, with the API server's defaults: those of static manifests
// first, and then by name.
type Objects struct {
	MutatingPolicies   []Entry[admissionregistrationv1.MutatingAdmissionPolicy]
	MutatingBindings   []Entry[admissionregistrationv1.MutatingAdmissionPolicyBinding]
	ValidatingPolicies []Entry[admissionregistrationv1.ValidatingAdmissionPolicy]
	ValidatingBindings []Entry[admissionregistrationv1.ValidatingAdmissionPolicyBinding]
	MutatingWebhooks   []Entry[admissionregistrationv1.MutatingWebhookConfiguration]
	ValidatingWebhooks []Entry[admissionregistrationv1.ValidatingWebhookConfiguration]
}

// An Entry is a decoded object.
type Entry[T any] struct {
	*manifest.Object
	Value *T
}

// Read decodes the objects. Kinds that decide nothing are left out. With beta, mutating policies are read as v1beta1 too, which has the
// fields of v1. The error reports all problems.
func (o *Objects) Read(all []*manifest.Object, beta bool) error {
	if beta {
		all = slices.Clone(all)
		for i, object := range all {
			if IsBeta(object) {
				as := *object
				as.APIVersion = admissionregistrationv1.SchemeGroupVersion.String()
				all[i] = &as
			}
		}
	}
	if err := o.decode(all); err != nil {
		return err
	}
	return o.checkStatic()
}

func (o *Objects) decode(all []*manifest.Object) error {
	return errors.Join(
		take(all, &o.MutatingPolicies, func(p *admissionregistrationv1.MutatingAdmissionPolicy) error {
			defaultFailurePolicy(&p.Spec.FailurePolicy)
			defaultMatchResources(p.Spec.MatchConstraints)
			return policyfields.Join(policyfields.MutatingPolicy(&p.Spec))
		}),
		take(all, &o.MutatingBindings, func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) error {
			defaultMatchResources(b.Spec.MatchResources)
			return policyfields.Join(policyfields.MutatingBinding(&b.Spec))
		}),
		take(all, &o.ValidatingPolicies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) error {
			defaultFailurePolicy(&p.Spec.FailurePolicy)
			defaultMatchResources(p.Spec.MatchConstraints)
			return policyfields.Join(policyfields.ValidatingPolicy(p.Name, &p.Spec))
		}),
		take(all, &o.ValidatingBindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) error {
			defaultMatchResources(b.Spec.MatchResources)
			return policyfields.Join(policyfields.ValidatingBinding(&b.Spec))
		}),
		take(all, &o.MutatingWebhooks, func(c *admissionregistrationv1.MutatingWebhookConfiguration) error {
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
		take(all, &o.ValidatingWebhooks, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
			for i := range c.Webhooks {
				w := &c.Webhooks[i]
				defaultFailurePolicy(&w.FailurePolicy)
				defaultWebhook(&w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules)
			}
			return nil
		}),
	)
}

// IsBeta reports whether an object is a mutating policy, or its binding, of v1beta1.
func IsBeta(o *manifest.Object) bool {
	gvk := o.GVK()
	return gvk.GroupVersion() == admissionregistrationv1beta1.SchemeGroupVersion && (gvk.Kind == "MutatingAdmissionPolicy" || gvk.Kind == "MutatingAdmissionPolicyBinding")
}

// take decodes the objects of kind T, and prepares each.
func take[T any](all []*manifest.Object, into *[]Entry[T], prepare func(*T) error) error {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", *new(T)), "v1.")
	var errs []error
	for _, o := range all {
		if o.GVK() != admissionregistrationv1.SchemeGroupVersion.WithKind(kind) {
			continue
		}
		if i := slices.IndexFunc(*into, func(e Entry[T]) bool { return e.Name == o.Name }); i >= 0 {
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
		*into = append(*into, Entry[T]{o, value})
	}
	slices.SortStableFunc(*into, before)
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

func defaultWebhook(policy **admissionregistrationv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, seconds **int32, rules []admissionregistrationv1.RuleWithOperations) {
	defaultMatching(policy, namespaces, objects)
	if *seconds == nil {
		*seconds = new(int32(10))
	}
	for i := range rules {
		defaultScope(&rules[i].Rule)
	}
}

// NoteBindings returns a note for each binding without policy, and for each policy without binding.
func (o *Objects) NoteBindings() []string {
	return slices.Concat(
		unbound(o.MutatingPolicies, o.MutatingBindings, func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
		unbound(o.ValidatingPolicies, o.ValidatingBindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
	)
}

func unbound[P, B any](policies []Entry[P], bindings []Entry[B], policyOf func(*B) string) []string {
	var notes []string
	for _, b := range bindings {
		if !slices.ContainsFunc(policies, func(p Entry[P]) bool { return p.Name == policyOf(b.Value) }) {
			notes = append(notes, b.Title()+" has no effect: there is no policy "+policyOf(b.Value))
		}
	}
	for _, p := range policies {
		if !slices.ContainsFunc(bindings, func(b Entry[B]) bool { return p.Name == policyOf(b.Value) }) {
			notes = append(notes, p.Title()+" has no effect: it has no binding")
		}
	}
	return notes
}
