// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
)

// policyRules are the rules of package policyrules.
func policyRules() []Rule {
	var out []Rule
	for _, r := range append(policyrules.Rules(), policyrules.Exempt()) {
		rule := Rule{ID: r.ID, Group: groupPolicies, What: r.What, Why: r.Why, Fix: r.Fix, Source: r.Source}
		for _, level := range r.Levels {
			rule.Severities = append(rule.Severities, Severity(level))
		}
		rule.check = func(c *checker) {
			r.Check(c.policySet(), func(f policyrules.Finding) {
				c.fixing(f.Fix).object(f.Object.Ref.(*Object), Severity(f.Level), f.Pointer, "%s", f.Message)
			}, func(o *policyrules.Object, reason string) { c.skip(o.Ref.(*Object).title(), "%s", reason) })
		}
		out = append(out, rule)
	}
	return out
}

func (o *Object) forPolicies() *policyrules.Object {
	return &policyrules.Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, V1: o.APIVersion == admissionregistrationv1.SchemeGroupVersion.String(), Ref: o}
}

// policiesForRules is the inventory as the rules of policies see it.
func (c *checker) policiesForRules() *policyrules.Set {
	out := &policyrules.Set{
		Release: c.options.Release, Groups: map[string]bool{}, Objects: map[schema.GroupVersionKind][]*policyrules.Object{},
		AllPolicies:       c.complete["ValidatingAdmissionPolicy"] && c.complete["MutatingAdmissionPolicy"],
		AllBindings:       c.complete["ValidatingAdmissionPolicyBinding"] && c.complete["MutatingAdmissionPolicyBinding"],
		Listed:            func(gvk schema.GroupVersionKind) bool { return c.complete[gvk.Kind] },
		ExcludesNamespace: c.policyExcludes, Writers: c.allUsersWrite, Schema: c.schemaOf,
	}
	for _, p := range c.policies {
		out.Policies = append(out.Policies, &policyrules.Policy{Object: p.forPolicies(), Mutating: p.mutating, Validating: p.validating, Mutation: p.mutation})
	}
	for _, b := range c.bindings {
		out.Bindings = append(out.Bindings, &policyrules.Binding{Object: b.forPolicies(), Mutating: b.mutating, PolicyName: b.policy, Match: b.match, ParamRef: b.paramRef, Actions: b.actions})
	}
	for _, w := range c.webhooks {
		out.Webhooks = append(out.Webhooks, policyrules.Webhook{Title: w.title(), Mutating: w.config.mutating, Rules: w.Rules,
			Reinvoked: w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy})
	}
	for gvk, objects := range c.byKind {
		for _, o := range objects {
			out.Objects[gvk] = append(out.Objects[gvk], o.forPolicies())
		}
	}
	c.addResources(out)
	out.Index()
	return out
}

// addResources adds the known resources, and those of definitions that were read.
func (c *checker) addResources(to *policyrules.Set) {
	if known := c.options.Resources; known != nil {
		to.Resources, to.Complete = slices.Clone(known.Versions), known.Complete
		for group := range known.ByGroup {
			to.Groups[group] = known.Complete || scheme.Scheme.IsGroupRegistered(group)
		}
	}
	if to.Complete {
		return
	}
	for _, d := range c.definitions {
		for _, v := range d.value.Spec.Versions {
			if v.Served {
				to.Resources = append(to.Resources, policyrules.Resource{
					GroupVersionResource: schema.GroupVersionResource{Group: d.value.Spec.Group, Version: v.Name, Resource: d.value.Spec.Names.Plural},
					Kind:                 d.value.Spec.Names.Kind, Namespaced: d.value.Spec.Scope == apiextensionsv1.NamespaceScoped,
				})
			}
		}
	}
}

// schemaOf returns the schema of a definition that was read, as JSON, or nil.
func (c *checker) schemaOf(gvk schema.GroupVersionKind) []byte {
	for _, d := range c.definitions {
		if d.value.Spec.Group != gvk.Group || d.value.Spec.Names.Kind != gvk.Kind {
			continue
		}
		for _, v := range d.value.Spec.Versions {
			if v.Name == gvk.Version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				raw, err := json.Marshal(v.Schema.OpenAPIV3Schema)
				if err == nil {
					return raw
				}
			}
		}
	}
	return nil
}

// policyExcludes reports whether the selectors of a policy or its binding exclude a namespace.
func (c *checker) policyExcludes(p *policyrules.Policy, b *policyrules.Binding, namespace string) bool {
	var constraints *admissionregistrationv1.MatchResources
	if p.Mutating {
		constraints = p.Mutation.MatchConstraints
	} else {
		constraints = p.Validating.MatchConstraints
	}
	return slices.ContainsFunc([]*admissionregistrationv1.MatchResources{constraints, b.Match}, func(m *admissionregistrationv1.MatchResources) bool {
		return m != nil && c.excludesNamespace(m.NamespaceSelector, namespace)
	})
}

// allUsers are the groups that stand for all users, or all workloads.
var allUsers = []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts"}

// allUsersWrite returns which of the groups may change objects of a resource, and by which role.
func (c *checker) allUsersWrite(group, resource string) []string {
	var out []string
	for _, b := range c.roleBindings {
		for _, s := range b.subjects {
			if s.Kind != rbacv1.GroupKind || !slices.Contains(allUsers, s.Name) {
				continue
			}
			for _, r := range c.roles {
				if r.Kind == b.ref.Kind && r.Name == b.ref.Name && slices.ContainsFunc(r.rules, func(rule rbacv1.PolicyRule) bool {
					return len(verbsOn(rule, group, resource, "create", "update", "patch", "delete")) > 0
				}) {
					out = append(out, fmt.Sprintf("%s (by %s %s)", s.Name, b.Kind, b.Name))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
