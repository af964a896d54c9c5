// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

func subresourceStar() Rule {
	return Rule{
		ID: "subresource-star", Group: groupMatching, Severities: []Severity{Warning}, Source: "incidents",
		What: "No rule matches all sub-resources: */*, or a resource with /*.",
		Why:  "It matches status updates, exec, log and evictions: far more calls, and objects of other kinds than the handler expects.",
		Fix:  "Name the sub-resources that the webhook needs.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				for _, rule := range w.Rules {
					if slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.HasSuffix(r, "/*") }) {
						c.webhook(w, Warning, "rules", "rule %s includes subresources such as status and exec", matcher.RuleText(rule))
					}
				}
			}
		},
	}
}
