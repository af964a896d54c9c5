// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/sallyport-io/sallyport/internal/selectors"

func failPolicyMutating() Rule {
	return Rule{
		ID: "fail-policy-mutating", Group: groupTime, Severities: []Severity{Warning}, Source: fromGP,
		What: "A mutating webhook with failurePolicy Fail is narrowed by match conditions or an object selector to the objects that it is for.",
		Why:  "While its server is down, everything that it matches is refused, whether or not it would have been changed.",
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
