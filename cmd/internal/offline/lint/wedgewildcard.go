// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"

func wedgeWildcard() Rule {
	return Rule{
		ID: "wedge-wildcard", Group: groupWedge, Severities: []Severity{Error}, Source: "incidents",
		What: "A webhook with failurePolicy Fail and * in apiGroups or resources has a selector or match conditions.",
		Why:  "When its server is down, nothing can be written, not even the fix.",
		Fix:  "Name the groups and resources that the webhook needs, and exclude the system namespaces by namespaceSelector.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if !w.failsClosed() || w.narrowed() {
					continue
				}
				for _, rule := range w.Rules {
					if wildcard(rule) {
						c.webhook(w, Error, "rules", "failurePolicy Fail with rule %s and no selector blocks every write while the server is down", matcher.RuleText(rule))
						break
					}
				}
			}
		},
	}
}
