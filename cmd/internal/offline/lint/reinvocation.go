// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

func reinvocation() Rule {
	return Rule{
		ID: "reinvocation", Group: groupMatching, Severities: []Severity{Info}, Source: fromGP,
		What: "If several mutating webhooks match one resource, a webhook that depends on fields that others may set has reinvocationPolicy IfNeeded.",
		Why:  "Otherwise it misses changes by later webhooks. A handler that is called again must be idempotent.",
		Fix:  "Set reinvocationPolicy: IfNeeded, and test that a second call changes nothing.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if !w.config.mutating || w.ReinvocationPolicy != nil && *w.ReinvocationPolicy != admissionregistrationv1.NeverReinvocationPolicy {
					continue
				}
				if other := c.another(w); other != nil {
					c.webhook(w, Info, "reinvocationPolicy", "%s may later change fields that the handler reads; consider IfNeeded", other.title())
				}
			}
		},
	}
}

// another returns another mutating webhook for a resource of this one, or nil.
func (c *checker) another(w *webhook) *webhook {
	for _, other := range c.webhooks {
		if other == w || !other.config.mutating {
			continue
		}
		for _, rule := range w.Rules {
			if slices.ContainsFunc(other.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return matcher.Overlap(rule, r) }) {
				return other
			}
		}
	}
	return nil
}
