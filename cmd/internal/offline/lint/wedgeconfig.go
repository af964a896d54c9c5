// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

const registrationGroup = "admissionregistration.k8s.io"

func wedgeConfig() Rule {
	return Rule{
		ID: "wedge-config", Group: groupWedge, Severities: []Severity{Error}, Source: fromAPI,
		What: "No rule names webhook configurations, admission policies or their bindings, except in a static manifest.",
		Why:  "Webhooks registered through the API never see them, so the rule gives false confidence. Webhooks of static manifests do see them.",
		Fix:  "Drop the rule, or use a static admission manifest.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if w.config.static() {
					continue
				}
				for _, rule := range w.Rules {
					if named := namedIn(rule, registrationGroup, resourcenames.InNoNamespace[registrationGroup]); len(named) > 0 {
						c.webhook(w, Error, "rules", "rule names %s; kube-apiserver never sends it to this webhook", strings.Join(named, ", "))
					}
				}
			}
		},
	}
}

// namedIn returns the group's resources that a rule names, or covers by a wildcard for
// that group only.
func namedIn(rule admissionregistrationv1.RuleWithOperations, group string, resources []string) []string {
	if !slices.Contains(rule.APIGroups, group) {
		return nil
	}
	var out []string
	for _, resource := range resources {
		if matcher.Covers(rule, group, resource) {
			out = append(out, resource)
		}
	}
	return out
}
