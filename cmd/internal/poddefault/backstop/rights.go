// SPDX-License-Identifier: Apache-2.0

package backstop

import rbacv1 "k8s.io/api/rbac/v1"

// PolicyRules are the rights that the controller needs in addition to the webhook's.
// Server-side apply needs create for missing objects, and its request has the name.
// List and watch restrict the name by a field selector. Get is for the registration:
// whoever writes a policy must be allowed to get the parameters it might read.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{TemplateResource}, ResourceNames: []string{TemplateName}, Verbs: []string{"create", "list", "patch", "watch"}},
		{APIGroups: []string{""}, Resources: []string{TemplateResource}, Verbs: []string{"get"}},
	}
}
