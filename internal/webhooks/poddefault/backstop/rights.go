// SPDX-License-Identifier: Apache-2.0

package backstop

import rbacv1 "k8s.io/api/rbac/v1"

// PolicyRules are the rights that the controller needs beside those of the webhook, from
// which it reads. Server-side apply needs create where there is no object, and says the
// name; list and watch say it by a field selector. Get is for the registration: who writes
// a policy must be allowed to get whatever it might read.
func PolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{TemplateResource}, ResourceNames: []string{TemplateName}, Verbs: []string{"create", "list", "patch", "watch"}},
		{APIGroups: []string{""}, Resources: []string{TemplateResource}, Verbs: []string{"get"}},
	}
}
