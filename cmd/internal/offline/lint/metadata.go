// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/objectmeta"
)

func metadata() Rule {
	return Rule{
		ID: "metadata", Group: groupObjects, Severities: []Severity{Error}, Source: fromAPI,
		What: "The metadata of an object, and of a workload's pods, is valid: a name, namespace, labels, annotations, owners and finalizers as Kubernetes permits them.",
		Why:  "The API server refuses the object, or the workload.",
		Fix:  "Correct the value. A label's has at most 63 letters, digits, '-', '_' and '.': a version with '+' is not one, and belongs into an annotation.",
		check: func(c *checker) {
			if c.cluster {
				return // stored objects passed the API server
			}
			for gvk, objects := range c.byKind {
				for _, o := range objects {
					for _, p := range objectmeta.Check(o.Raw, gvk, slices.Contains(Kinds(), gvk)) {
						c.object(o, Error, pointerTo(p.Field), "%s: %s", p.Field, p.Text)
					}
				}
			}
		},
	}
}
