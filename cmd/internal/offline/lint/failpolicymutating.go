// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/sallyport-io/sallyport/internal/kube/selectors"

func failPolicyMutating() Rule {
	return Rule{
		ID: "fail-policy-mutating", Group: groupTime, Severities: []Severity{Warning}, Source: fromGP,
		What: "Match conditions or an object selector narrow a mutating webhook with failurePolicy Fail to the objects that it must change.",
		Why:  "While its server is down, every matching object is rejected, whether or not it would have been changed.",
		Fix:  "Prefer Ignore and a validating webhook or policy that checks the final state; or match only objects that must not be stored unchanged.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if w.config.mutating && w.failsClosed() && len(w.MatchConditions) == 0 && !selectors.OptsIn(w.ObjectSelector) {
					c.webhook(w, Warning, "failurePolicy", "mutating webhook with failurePolicy Fail; prefer Ignore and a validating webhook for the final state")
				}
			}
		},
	}
}
