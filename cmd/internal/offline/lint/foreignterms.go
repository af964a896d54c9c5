// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"strings"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

func foreignTerms() Rule {
	return Rule{
		ID: "foreign-terms", Group: groupMatching, Severities: []Severity{Error}, Source: "incidents",
		What: "No other client has added terms to the selectors, or match conditions, of webhooks that a Sallyport server registers, or of the policy that stands in for them. The server's own are in the annotation registration.sallyport.io/terms.",
		Why:  "The API server does not call the webhook for objects that such a term excludes: they are stored unchanged and unchecked, as if there were no webhook.",
		Fix:  "Remove the term. If it is intended, write it in the server's configuration (registration.namespaceSelector, or namespaceSelector, objectSelector or matchConditions of the webhook). With registration.foreignTerms: Refuse the server removes such terms itself.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				terms, _ := foreign.Terms(w.config.meta, []foreign.Webhook{{
					Name: w.Name, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
				}}, foreign.Manager)
				for _, t := range terms {
					c.webhook(w, Error, t.Field, "%s added %s to %s: objects that this excludes bypass the webhook", addedBy(t), t.Text, t.Field)
				}
			}
			narrowed := func(o *Object, terms []foreign.Term) {
				for _, t := range terms {
					c.object(o, Error, "/spec", "%s added %s to %s: the policy does not stand in for the webhook where that excludes", addedBy(t), t.Text, t.Field)
				}
			}
			for _, p := range c.policies {
				narrowed(p.Object, p.foreign)
			}
			for _, b := range c.bindings {
				narrowed(b.Object, b.foreign)
			}
		},
	}
}

// addedBy names who added a term.
func addedBy(t foreign.Term) string {
	return cmp.Or(strings.Join(t.Managers, ", "), "another client")
}
