// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func crdStoredVersions() Rule {
	return Rule{
		ID: "crd-stored-versions", Group: groupCRD, Severities: []Severity{Error}, Source: "API documentation",
		What: "Every version in status.storedVersions is still in spec.versions.",
		Why:  "Otherwise objects in etcd can no longer be decoded.",
		Fix:  "Restore the version, rewrite all objects in the storage version, then remove it from status.storedVersions and from spec.versions.",
		check: func(c *checker) {
			for _, d := range c.definitions {
				for _, stored := range d.value.Status.StoredVersions {
					if !slices.ContainsFunc(d.value.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
						c.object(d.Object, Error, "/status/storedVersions", "stored version %s is missing in spec.versions", stored)
					}
				}
				if len(d.value.Status.StoredVersions) == 0 && len(d.value.Spec.Versions) > 1 {
					c.skip(d.title(), "the definition has no status: only a cluster knows which versions were stored")
				}
			}
		},
	}
}
