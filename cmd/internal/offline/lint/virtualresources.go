// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// virtual are resources that are never stored.
var virtual = map[string][]string{
	"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews"},
	"authorization.k8s.io":  {"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
}

// virtualSince is the N of Kubernetes 1.N, from which webhooks no longer receive them.
const virtualSince = 37

func virtualResources() Rule {
	return Rule{
		ID: "virtual-resources", Group: groupWedge, Severities: []Severity{Warning}, Source: fromGP,
		What: "No rule matches token reviews or access reviews.",
		Why:  "Before Kubernetes 1.37 such a webhook can block authentication and authorization for all users; since then webhooks do not see them.",
		Fix:  "Name the groups that the webhook needs, without authentication.k8s.io and authorization.k8s.io.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				var matched []string
				for _, group := range []string{"authentication.k8s.io", "authorization.k8s.io"} {
					for _, resource := range virtual[group] {
						if w.covers(group, resource, "CREATE") {
							matched = append(matched, resource)
						}
					}
				}
				if len(matched) > 0 && !selectors.OptsIn(w.ObjectSelector) {
					c.webhook(w, Warning, "rules", "rule matches %s; since Kubernetes 1.37 it is never sent, before it can lock the cluster", strings.Join(matched, ", "))
				}
			}
		},
	}
}
