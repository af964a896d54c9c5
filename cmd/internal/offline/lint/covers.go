// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

// covers reports whether a rule of the webhook matches the resource and one of the
// operations.
func (w *webhook) covers(group, resource string, operations ...admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return matcher.Covers(r, group, resource, operations...)
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
