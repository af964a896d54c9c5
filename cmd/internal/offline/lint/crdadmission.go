// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func crdAdmission() Rule {
	return Rule{
		ID: "crd-admission", Group: groupWedge, Severities: []Severity{Warning}, Source: "incidents",
		What: "No webhook with failurePolicy Fail matches CustomResourceDefinitions or APIServices, unless it is narrowed.",
		Why:  "Upgrades depend on them, including the upgrade of the webhook's own project that may fix it.",
		Fix:  "Use Ignore, or match conditions that exclude objects that the webhook does not need.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if !w.failsClosed() || len(w.MatchConditions) > 0 || selectors.OptsIn(w.ObjectSelector) {
					continue
				}
				var matched []string
				for _, r := range []struct{ group, resource string }{{"apiextensions.k8s.io", "customresourcedefinitions"}, {"apiregistration.k8s.io", "apiservices"}} {
					if w.covers(r.group, r.resource) {
						matched = append(matched, r.resource)
					}
				}
				if len(matched) > 0 {
					c.webhook(w, Warning, "rules", "failurePolicy Fail on %s can block the upgrade of its own project", strings.Join(matched, ", "))
				}
			}
		},
	}
}
