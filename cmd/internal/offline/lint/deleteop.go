// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func deleteOp() Rule {
	return Rule{
		ID: "delete-op", Group: groupMatching, Severities: []Severity{Warning}, Source: "practice",
		What: "No mutating webhook matches DELETE, and no validating one with failurePolicy Fail does, unless a label or condition narrows it.",
		Why:  "A patch on DELETE is an error that Ignore does not cover. A validating webhook that is down blocks the deletion of namespaces and garbage collection.",
		Fix:  "Drop DELETE from a mutating webhook. For a validating one use Ignore, or match only objects that must not be deleted.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				for _, rule := range w.Rules {
					if !matcher.Names(rule, admissionregistrationv1.Delete) {
						continue
					}
					if w.config.mutating {
						c.webhook(w, Warning, "rules", "mutating webhook on DELETE cannot patch")
					} else if w.failsClosed() && len(w.MatchConditions) == 0 && !selectors.OptsIn(w.ObjectSelector) {
						c.webhook(w, Warning, "rules", "failurePolicy Fail on DELETE %s can block namespace deletion", strings.Join(rule.Resources, ","))
					}
				}
			}
		},
	}
}
