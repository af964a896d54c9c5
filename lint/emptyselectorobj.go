// SPDX-License-Identifier: Apache-2.0

package lint

func emptySelectorObj() Rule {
	return Rule{
		ID: "empty-selector-obj", Group: groupMatching, Severities: []Severity{Info}, Source: fromGP,
		What: "The objectSelector does not serve to opt out.",
		Why:  "Whoever writes an object chooses its labels: they are no border of security.",
		Fix:  "Do not rely on it for enforcement: select by namespace, or by match conditions about what users cannot choose.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if optsOut(w.ObjectSelector) {
					c.webhook(w, Info, "objectSelector", "objectSelector can be controlled by the user; do not rely on it for enforcement")
				}
			}
		},
	}
}
