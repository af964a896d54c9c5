// SPDX-License-Identifier: Apache-2.0

package lint

func failPolicyUnset() Rule {
	return Rule{
		ID: "fail-policy-unset", Group: groupTime, Severities: []Severity{Info}, Source: fromAPI,
		What: "failurePolicy is set.",
		Why:  "The default is Fail: readers of the object should see it.",
		Fix:  "Set failurePolicy: Fail, or Ignore.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if w.FailurePolicy == nil {
					c.webhook(w, Info, "", "failurePolicy is unset and defaults to Fail")
				}
			}
		},
	}
}
