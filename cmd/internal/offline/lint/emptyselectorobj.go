// SPDX-License-Identifier: Apache-2.0

package lint

func emptySelectorObj() Rule {
	return Rule{
		ID: "empty-selector-obj", Group: groupMatching, Severities: []Severity{Info}, Source: fromGP,
		What: "The objectSelector is not a way to opt out.",
		Why:  "Users choose the labels of the objects that they write: labels are not a security boundary.",
		Fix:  "Do not rely on it for enforcement: select by namespace, or by match conditions on fields that users cannot choose.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if optsOut(w.ObjectSelector) {
					c.webhook(w, Info, "objectSelector", "objectSelector can be controlled by the user; do not rely on it for enforcement")
				}
			}
		},
	}
}
