// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
)

func workloadRBACConfig() Rule {
	return Rule{
		ID: "workload-rbac-config", Group: groupWorkload, Severities: []Severity{Warning}, Source: fromGP,
		What: "Only administrators can create or delete any webhook configuration, or label any namespace.",
		Why:  "Both bypass admission: removing a webhook, and labelling a namespace so that a selector excludes it.",
		Fix:  "Limit the rule by resourceNames, or remove the verbs.",
		check: func(c *checker) {
			for _, r := range c.roles {
				if r.Kind != "ClusterRole" || systemRole(r.Name) {
					continue
				}
				for i, rule := range r.rules {
					for _, target := range []struct {
						group, resource string
						verbs           []string
					}{
						{registrationGroup, "mutatingwebhookconfigurations", []string{"create", "delete", "deletecollection"}},
						{registrationGroup, "validatingwebhookconfigurations", []string{"create", "delete", "deletecollection"}},
						{"", "namespaces", []string{"update", "patch"}},
					} {
						if verbs := verbsOn(rule, target.group, target.resource, target.verbs...); len(verbs) > 0 {
							c.right(r, i, verbs, target.resource, "%s can %s %s")
						}
					}
				}
			}
		},
	}
}

// right reports the rights of a role's rule, and their subjects.
func (c *checker) right(r *role, i int, verbs []string, resource, format string) {
	subjects := c.subjects(r)
	who := strings.Join(subjects, ", ")
	if len(subjects) == 0 {
		who = "every subject of " + r.Kind + " " + r.Name
	} else if slices.Equal(subjects, []string{"Group system:masters"}) {
		return
	}
	c.object(r.Object, Warning, "/rules/"+itoa(i), format, who, strings.Join(verbs, ", "), resource)
}
