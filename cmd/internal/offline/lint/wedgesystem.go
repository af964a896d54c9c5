// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func wedgeSystem() Rule {
	return Rule{
		ID: "wedge-system", Group: groupWedge, Severities: []Severity{Warning}, Source: fromGP,
		What: "A webhook matches nothing in kube-system, kube-node-lease and kube-public.",
		Why:  "The components that run the cluster must not depend on a webhook.",
		Fix:  "Exclude them: namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system, kube-node-lease, kube-public]. If it must match objects there, opt in by an objectSelector.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				var reached []string
				for _, namespace := range selectors.ExcludedNamespaces() {
					if slices.ContainsFunc(w.namespaced(), func(r aRequest) bool { return c.reaches(w, r.group, r.resource, namespace) }) {
						reached = append(reached, namespace)
					}
				}
				if len(reached) > 0 {
					c.webhook(w, Warning, "", "webhook matches objects in %s", strings.Join(reached, ", "))
				}
			}
		},
	}
}

// namespaced returns namespaced built-in resources that the webhook matches, one per
// rule. System namespaces contain few others.
func (w *webhook) namespaced() []aRequest {
	var out []aRequest
rules:
	for _, rule := range w.Rules {
		if rule.Scope != nil && *rule.Scope == "Cluster" {
			continue
		}
		for _, group := range slices.Sorted(maps.Keys(resourcenames.Namespaced)) {
			for _, resource := range resourcenames.Namespaced[group] {
				if slices.ContainsFunc(rule.Resources, func(r string) bool { // itself, or a subresource
					_, sub, _ := strings.Cut(r, "/")
					return matcher.Covers(rule, group, resource+"/"+strings.TrimPrefix(sub, "*"))
				}) {
					out = append(out, aRequest{group: group, resource: resource})
					continue rules
				}
			}
		}
	}
	return out
}
