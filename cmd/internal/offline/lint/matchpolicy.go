// SPDX-License-Identifier: Apache-2.0

package lint

func matchPolicy() Rule {
	return Rule{
		ID: "match-policy", Group: groupMatching, Severities: []Severity{Warning}, Source: fromGP,
		What: "matchPolicy is not Exact.",
		Why:  "With Exact, a request through another version of the same resource bypasses the webhook.",
		Fix:  "Omit matchPolicy, or set Equivalent: the API server converts versions that the rules do not name.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if w.exact() {
					c.webhook(w, Warning, "matchPolicy", "matchPolicy Exact lets requests through other versions bypass the webhook")
				}
			}
		},
	}
}
