// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

func crdWebhookVersions() Rule {
	return Rule{
		ID: "crd-webhook-versions", Group: groupCRD, Severities: []Severity{Warning}, Source: "practice",
		What: "A webhook for a custom resource with matchPolicy Exact names every served version.",
		Why:  "Requests through the others bypass it.",
		Fix:  "Use matchPolicy Equivalent.",
		check: func(c *checker) {
			for _, d := range c.definitions {
				var served []string
				for _, v := range d.value.Spec.Versions {
					if v.Served {
						served = append(served, v.Name)
					}
				}
				for _, w := range c.webhooks {
					if !w.exact() || !w.covers(d.value.Spec.Group, d.value.Spec.Names.Plural) {
						continue
					}
					var covered []string
					for _, version := range served {
						for _, rule := range w.Rules {
							if matcher.CoversVersion(rule, schema.GroupVersionResource{Group: d.value.Spec.Group, Version: version, Resource: d.value.Spec.Names.Plural}) && !slices.Contains(covered, version) {
								covered = append(covered, version)
							}
						}
					}
					if len(covered) < len(served) {
						c.webhook(w, Warning, "rules", "webhook %s covers [%s] of [%s] of %s; use Equivalent", w.Name, strings.Join(covered, " "), strings.Join(served, " "), d.Name)
					}
				}
			}
		},
	}
}
