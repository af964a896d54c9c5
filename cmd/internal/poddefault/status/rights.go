// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// PolicyRules are the rights that the controller needs in addition to the webhook's.
// Events are in the namespaces of their objects. Pods are listed, with the states of their
// containers, while a rollout is in progress.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource + "/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.ClusterPodDefaultResource + "/status"}, Verbs: []string{"patch"}},
		{
			APIGroups: []string{sallyportv1alpha1.GroupName},
			Resources: []string{sallyportv1alpha1.PodDefaultRevisionResource, sallyportv1alpha1.ClusterPodDefaultRevisionResource},
			Verbs:     []string{"get", "list", "create", "patch", "delete"},
		},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}
