// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

func foreignTerms() Rule {
	return Rule{
		ID: "foreign-terms", Group: groupMatching, Severities: []Severity{Error}, Source: "incidents",
		What: "No other client has added terms to the selectors, or match conditions, of webhooks that a Sallyport server registers. The server's own are in the annotation registration.sallyport.io/terms.",
		Why:  "The API server does not call the webhook for objects that such a term excludes: they are stored unchanged and unchecked, as if there were no webhook.",
		Fix:  "Remove the term. If it is intended, write it in the server's configuration (registration.namespaceSelector, or namespaceSelector, objectSelector or matchConditions of the webhook). With registration.foreignTerms: Refuse the server removes such terms itself.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				terms, _ := foreign.Terms(w.config.meta, []foreign.Webhook{{
					Name: w.Name, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
				}}, foreign.Manager)
				for _, t := range terms {
					by := "another client"
					if len(t.Managers) > 0 {
						by = strings.Join(t.Managers, ", ")
					}
					c.webhook(w, Error, t.Field, "%s added %s to %s: objects that this excludes bypass the webhook", by, t.Text, t.Field)
				}
			}
		},
	}
}
