// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
)

func olm() Rule {
	return Rule{
		ID: "olm", Group: groupWedge, Severities: []Severity{Warning}, Source: "Operator Lifecycle Manager",
		What: "No rule matches all groups, operators.coreos.com, or webhook configurations.",
		Why:  "The Operator Lifecycle Manager refuses to install a bundle with such a webhook.",
		Fix:  "Name the groups that the webhook needs.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				var what []string
				for _, rule := range w.Rules {
					if slices.Contains(rule.APIGroups, "*") {
						what = append(what, "all groups")
					}
					if slices.Contains(rule.APIGroups, "operators.coreos.com") {
						what = append(what, "operators.coreos.com")
					}
					what = append(what, namedIn(rule, registrationGroup, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})...)
				}
				if slices.Sort(what); len(what) > 0 && !w.config.static() {
					c.webhook(w, Warning, "rules", "OLM refuses webhooks that match %s", strings.Join(slices.Compact(what), ", "))
				}
			}
		},
	}
}
