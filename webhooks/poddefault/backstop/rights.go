// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	rbacv1 "k8s.io/api/rbac/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// PolicyRules are the rights that the controller needs, and no more: server-side apply
// takes create where there is no object; and who writes a policy must be allowed to get
// what it reads. Those for the policy itself are the registration's.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.ClusterPodDefaultResource}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.PodDefaultIndexResource}, Verbs: []string{"create", "get", "list", "patch", "watch"}},
	}
}
