// SPDX-License-Identifier: Apache-2.0

package registration

import rbacv1 "k8s.io/api/rbac/v1"

// PolicyRules are the rights that a [Keeper] of configurations with that name
// needs, and no more: for cluster-scoped objects, so they belong in a
// ClusterRole.
//
// Every verb is limited to the name. That works for create because server-side
// apply checks it with the name in the URL, unlike a POST, and for list and
// watch because the field selector metadata.name is set.
func PolicyRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{"admissionregistration.k8s.io"},
		Resources:     []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
		ResourceNames: []string{name},
		Verbs:         []string{"create", "delete", "get", "list", "patch", "watch"},
	}}
}
