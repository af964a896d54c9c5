// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

func wildcards() Rule {
	return Rule{
		ID: "wildcard", Group: groupMatching, Severities: []Severity{Warning}, Source: fromGP,
		What: "Rules name groups, versions and resources, and no *.",
		Why:  "The rule also matches resources that are installed later, in versions that the handler does not know, and every write in the cluster waits for the webhook, whatever its failurePolicy.",
		Fix:  "List the resources that the handler reads; matchPolicy Equivalent, the default, covers its other versions.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				for _, rule := range w.Rules {
					var fields []string
					for _, list := range []struct {
						field  string
						values []string
					}{{"apiGroups", rule.APIGroups}, {"apiVersions", rule.APIVersions}} {
						if slices.Contains(list.values, "*") {
							fields = append(fields, list.field)
						}
					}
					if slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.HasPrefix(r, "*") }) {
						fields = append(fields, "resources")
					}
					if len(fields) > 0 {
						c.webhook(w, Warning, "rules", "rule %s has * in %s", matcher.RuleText(rule), strings.Join(fields, " and "))
						break
					}
				}
			}
		},
	}
}
