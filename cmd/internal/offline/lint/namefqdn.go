// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func nameFQDN() Rule {
	return Rule{
		ID: "name-fqdn", Group: groupIdentity, Severities: []Severity{Error}, Source: fromAPI,
		What: "The name of a webhook is a DNS subdomain of at least three segments, and unique in its configuration.",
		Why:  "The API server refuses anything else; the name is the prefix of audit annotations and a label of metrics.",
		Fix:  "Use a domain of yours, such as check.crontab.example.com.",
		check: func(c *checker) {
			for _, config := range c.configurations {
				seen := map[string]bool{}
				for _, w := range config.webhooks {
					if problems := validation.IsDNS1123Subdomain(w.Name); len(problems) > 0 {
						c.webhook(w, Error, "name", "webhook name %q is not a DNS subdomain", w.Name)
					} else if strings.Count(w.Name, ".") < 2 {
						c.webhook(w, Error, "name", "webhook name %s needs at least three segments separated by dots", w.Name)
					}
					if seen[w.Name] {
						c.fixing("Give each webhook of a configuration a name of its own.").webhook(w, Error, "name", "webhook name %s is used twice", w.Name)
					}
					seen[w.Name] = true
				}
			}
		},
	}
}
