// SPDX-License-Identifier: Apache-2.0

package lint

func preferCEL() Rule {
	return Rule{
		ID: "prefer-cel", Group: groupDesign, Severities: []Severity{Info}, Source: fromGP,
		What: "What a field test, a default or a constant change could do is no webhook.",
		Why:  "A ValidatingAdmissionPolicy, a MutatingAdmissionPolicy, or defaults and validations in the schema of a CRD need no server that can be down.",
		Fix:  "Write it as a policy.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if known, ok := c.known(w); ok && known.Policy != "" {
					c.webhook(w, Info, "", "this check could be a %s", known.Policy)
				}
			}
		},
	}
}
