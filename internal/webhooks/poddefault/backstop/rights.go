// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	rbacv1 "k8s.io/api/rbac/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// PolicyRules are the rights that the controller needs, and no more. Server-side apply
// takes create where there is no object, and says the name; list and watch do by a field
// selector. Get is for the registration: who writes a policy must be allowed to get
// whatever it might read.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{sallyportv1alpha1.ClusterPodDefaultResource}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{TemplateResource}, ResourceNames: []string{TemplateName}, Verbs: []string{"create", "list", "patch", "watch"}},
		{APIGroups: []string{""}, Resources: []string{TemplateResource}, Verbs: []string{"get"}},
	}
}
