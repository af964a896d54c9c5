// SPDX-License-Identifier: Apache-2.0

// Package rbac has the permissions that the controller of webhook configurations needs.
package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// PolicyRules are the permissions that a controller of configurations with that name needs,
// and no more. They are for cluster-scoped objects, so they belong in a ClusterRole.
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

// BackstopPolicyRules are the permissions that a controller needs in addition to
// [PolicyRules] if a webhook has a backstop. The author of a policy must also be allowed to
// get its parameters.
func BackstopPolicyRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{"admissionregistration.k8s.io"},
		Resources:     []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
		ResourceNames: []string{name},
		Verbs:         []string{"create", "delete", "get", "list", "patch", "watch"},
	}}
}

// ConversionPolicyRules are the permissions that a controller needs in addition to
// [PolicyRules] to write spec.conversion of these definitions. RBAC has no fields:
// permission to patch a definition covers all of it.
func ConversionPolicyRules(crds ...string) []rbacv1.PolicyRule {
	if len(crds) == 0 {
		return nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(crds)))
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{"apiextensions.k8s.io"},
		Resources:     []string{"customresourcedefinitions"},
		ResourceNames: names,
		Verbs:         []string{"get", "list", "patch", "watch"},
	}}
}

// OwnerPolicyRules are the permissions to look up the UID of a ClusterRole for the owner of configurations.
func OwnerPolicyRules(clusterRole string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups:     []string{rbacv1.GroupName},
		Resources:     []string{"clusterroles"},
		ResourceNames: []string{clusterRole},
		Verbs:         []string{"get"},
	}}
}

// EventPolicyRules are the permissions that the recorder of events needs in the
// namespace default, where events about cluster-scoped objects are stored.
func EventPolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"events.k8s.io"},
		Resources: []string{"events"},
		Verbs:     []string{"create", "patch"}, // patch increments the count
	}}
}
