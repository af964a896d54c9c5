// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func virtualResources() Rule {
	return Rule{
		ID: "virtual-resources", Group: groupWedge, Severities: []Severity{Warning}, Source: fromGP,
		What: "No rule matches token reviews or access reviews.",
		Why:  "Before Kubernetes 1.37 such a webhook can block authentication and authorization for all users; since then webhooks do not see them.",
		Fix:  "Name the groups that the webhook needs, without authentication.k8s.io and authorization.k8s.io.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				var matched []string
				for _, review := range matcher.Reviews {
					if w.covers(review.Group, review.Resource, "CREATE") {
						matched = append(matched, review.Resource)
					}
				}
				if len(matched) > 0 && !selectors.OptsIn(w.ObjectSelector) {
					c.webhook(w, Warning, "rules", "rule matches %s; since Kubernetes 1.37 it is never sent, before it can lock the cluster", strings.Join(matched, ", "))
				}
			}
		},
	}
}
