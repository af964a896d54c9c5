// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// asked is what a rule is compared with.
type asked struct {
	admission.Attributes // nil: rules read only the following
	resource             schema.GroupVersionResource
	subresource          string
	namespace            string
	operation            admissionregistrationv1.OperationType
}

func (a *asked) GetResource() schema.GroupVersionResource { return a.resource }
func (a *asked) GetSubresource() string                   { return a.subresource }
func (a *asked) GetNamespace() string                     { return a.namespace }
func (a *asked) GetOperation() admission.Operation        { return admission.Operation(a.operation) }

func (a *asked) by(rule admissionregistrationv1.RuleWithOperations) bool {
	m := rules.Matcher{Rule: rule, Attr: a}
	return m.Matches()
}

var anyVersion, anyOperation = []string{"*"}, []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}

// Covers reports whether a rule can match a resource, such as pods or pods/status, whatever its version and the namespace
// are, with one of the operations; none, or *, means any.
func Covers(rule admissionregistrationv1.RuleWithOperations, group, resource string, operations ...admissionregistrationv1.OperationType) bool {
	rule.APIVersions = anyVersion
	return CoversVersion(rule, schema.GroupVersionResource{Group: group, Resource: resource}, operations...)
}

// CoversVersion is [Covers] for one version.
func CoversVersion(rule admissionregistrationv1.RuleWithOperations, of schema.GroupVersionResource, operations ...admissionregistrationv1.OperationType) bool {
	rule.Scope = nil
	if len(operations) == 0 || slices.Contains(operations, admissionregistrationv1.OperationAll) {
		rule.Operations, operations = anyOperation, anyOperation
	}
	a := &asked{resource: of}
	a.resource.Resource, a.subresource, _ = strings.Cut(of.Resource, "/")
	return slices.ContainsFunc(operations, func(operation admissionregistrationv1.OperationType) bool {
		a.operation = operation
		return a.by(rule)
	})
}

// Overlap reports whether two rules can match the same request, in whatever version and scope.
func Overlap(a, b admissionregistrationv1.RuleWithOperations) bool {
	var names, subs []string
	for _, resource := range slices.Concat(a.Resources, b.Resources) {
		name, sub, _ := strings.Cut(resource, "/")
		names, subs = append(names, name), append(subs, sub)
	}
	operations := slices.DeleteFunc(slices.Clone(a.Operations), func(o admissionregistrationv1.OperationType) bool { return !Names(b, o) })
	if Names(a, admissionregistrationv1.OperationAll) {
		operations = b.Operations
	}
	if len(operations) == 0 {
		return false
	}
	for _, group := range concrete(slices.Concat(a.APIGroups, b.APIGroups)) {
		for _, name := range concrete(names) {
			for _, sub := range concrete(subs) {
				if resource := name + "/" + sub; Covers(a, group, resource) && Covers(b, group, resource) {
					return true
				}
			}
		}
	}
	return false
}

// concrete returns the names that are not wildcards, or any name: rules that overlap have one of them in common.
func concrete(names []string) []string {
	out := slices.DeleteFunc(names, func(name string) bool { return name == "*" })
	if len(out) == 0 {
		return []string{"any"}
	}
	return out
}

// Names reports whether a rule has an operation, or all.
func Names(rule admissionregistrationv1.RuleWithOperations, operation admissionregistrationv1.OperationType) bool {
	return slices.Contains(rule.Operations, operation) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll)
}

// named gives rules of webhooks the type of those of policies.
func named(list []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.NamedRuleWithOperations {
	out := make([]admissionregistrationv1.NamedRuleWithOperations, len(list))
	for i, rule := range list {
		out[i].RuleWithOperations = rule
	}
	return out
}

// rule finds the rule that matches the request, and the resource as which it is sent: an equivalent one only if no rule is
// for the resource of the request. The order is that of k8s.io/apiserver/pkg/admission/plugin/policy/matching, which does not say which
// rule has matched.
func (r Request) rule(list []admissionregistrationv1.NamedRuleWithOperations, policy *admissionregistrationv1.MatchPolicyType) (rule admissionregistrationv1.RuleWithOperations, sent schema.GroupVersionResource, ok bool) {
	matches := func(n admissionregistrationv1.NamedRuleWithOperations, as schema.GroupVersionResource) bool {
		a := &asked{resource: as, subresource: r.Subresource, namespace: r.Namespace, operation: r.Operation}
		return a.by(n.RuleWithOperations) && (len(n.ResourceNames) == 0 || slices.Contains(n.ResourceNames, r.Name))
	}
	for _, n := range list {
		if matches(n, r.Resource) {
			return n.RuleWithOperations, r.Resource, true
		}
	}
	if policy != nil && *policy == admissionregistrationv1.Exact { // the API's default is Equivalent
		return rule, sent, false
	}
	for _, n := range list {
		for _, equivalent := range r.Equivalents {
			if equivalent != r.Resource && matches(n, equivalent) {
				return n.RuleWithOperations, equivalent, true
			}
		}
	}
	return rule, sent, false
}

// RuleText summarizes a rule for messages.
func RuleText(rule admissionregistrationv1.RuleWithOperations) string {
	group := strings.Join(rule.APIGroups, ",")
	if group == "" {
		group = `""`
	}
	return group + "/" + strings.Join(rule.APIVersions, ",") + " " + strings.Join(rule.Resources, ",")
}
