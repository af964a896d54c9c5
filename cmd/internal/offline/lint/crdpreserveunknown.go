// SPDX-License-Identifier: Apache-2.0

package lint

func crdPreserveUnknown() Rule {
	return Rule{
		ID: "crd-preserve-unknown", Group: groupCRD, Severities: []Severity{Error}, Source: fromAPI,
		What: "spec.preserveUnknownFields is false.",
		Why:  "Conversion needs structural schemas.",
		Fix:  "Set it to false, and set x-kubernetes-preserve-unknown-fields in the parts of the schema that need it.",
		check: func(c *checker) {
			for _, d := range c.definitions {
				if d.value.Spec.PreserveUnknownFields {
					c.object(d.Object, Error, "/spec/preserveUnknownFields", "preserveUnknownFields must be false")
				}
			}
		},
	}
}
