// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strconv"
	"strings"
)

func workloadRBACInjector() Rule {
	return Rule{
		ID: "workload-rbac-injector", Group: groupWorkload, Severities: []Severity{Warning}, Source: fromGP,
		What: "A component that writes CA bundles is limited to the objects that it maintains.",
		Why:  "Otherwise it could redirect every webhook's requests to itself.",
		Fix:  "Limit the rule by resourceNames.",
		check: func(c *checker) {
			for _, r := range c.roles {
				if r.Kind != "ClusterRole" || systemRole(r.Name) {
					continue
				}
				for i, rule := range r.rules {
					for _, target := range []struct{ group, resource string }{
						{registrationGroup, "mutatingwebhookconfigurations"}, {registrationGroup, "validatingwebhookconfigurations"},
						{"apiextensions.k8s.io", "customresourcedefinitions"},
					} {
						verbs := verbsOn(rule, target.group, target.resource, "update", "patch")
						// A role that can also create or delete them is not an
						// injector: workload-rbac-config reports it.
						if len(verbs) == 0 || slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Verbs, "create") || slices.Contains(rule.Verbs, "delete") {
							continue
						}
						subjects := c.subjects(r)
						who := strings.Join(subjects, ", ")
						if len(subjects) == 0 {
							who = "every subject of ClusterRole " + r.Name
						}
						c.object(r.Object, Warning, "/rules/"+itoa(i), "%s can %s all %s; limit it with resourceNames", who, strings.Join(verbs, " and "), target.resource)
					}
				}
			}
		},
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
