// SPDX-License-Identifier: Apache-2.0

package lint

func crdStorageVersion() Rule {
	return Rule{
		ID: "crd-storage-version", Group: groupCRD, Severities: []Severity{Error}, Source: fromAPI,
		What: "Exactly one version has storage: true.",
		Why:  "The API server refuses anything else.",
		Fix:  "Mark only the version in which objects are written to etcd.",
		check: func(c *checker) {
			for _, d := range c.definitions {
				n := 0
				for _, v := range d.value.Spec.Versions {
					if v.Storage {
						n++
					}
				}
				if n != 1 {
					c.object(d.Object, Error, "/spec/versions", "%d versions are marked as storage", n)
				}
			}
		},
	}
}
