// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// has reports whether a list contains a value or "*".
func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// ruleCovers reports whether a rule matches a resource, optionally with a subresource
// after a slash, in any version.
func ruleCovers(rule admissionregistrationv1.RuleWithOperations, group, resource string) bool {
	if !has(rule.APIGroups, group) {
		return false
	}
	base, sub, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(rule.Resources, func(r string) bool {
		ofBase, ofSub, _ := strings.Cut(r, "/")
		return (ofBase == "*" || ofBase == base) && (ofSub == "*" || ofSub == sub)
	})
}

// ruleFor reports whether a rule matches one of the operations; none means any.
func ruleFor(rule admissionregistrationv1.RuleWithOperations, operations ...admissionregistrationv1.OperationType) bool {
	return len(operations) == 0 || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) ||
		slices.ContainsFunc(operations, func(o admissionregistrationv1.OperationType) bool { return slices.Contains(rule.Operations, o) })
}

// covers reports whether a rule of the webhook matches the resource and one of the
// operations.
func (w *webhook) covers(group, resource string, operations ...admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return ruleFor(r, operations...) && ruleCovers(r, group, resource)
	})
}

// wildcard reports whether a rule matches all groups, or all resources of a group.
func wildcard(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(rule.APIGroups, "*") || slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.HasPrefix(r, "*") })
}

// resourceName returns "group/resource" for messages.
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// ruleText summarizes a rule for messages.
func ruleText(rule admissionregistrationv1.RuleWithOperations) string {
	group := strings.Join(rule.APIGroups, ",")
	if group == "" {
		group = `""`
	}
	return group + "/" + strings.Join(rule.APIVersions, ",") + " " + strings.Join(rule.Resources, ",")
}
