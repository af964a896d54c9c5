// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/resourcenames"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

func scope() Rule {
	return Rule{
		ID: "scope", Group: groupMatching, Severities: []Severity{Info}, Source: "practice",
		What: "A rule whose resources all have the same scope sets it.",
		Why:  "There is less to evaluate, and the intent is clear.",
		Fix:  "Set scope: Namespaced, or Cluster.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				for _, rule := range w.Rules {
					if rule.Scope != nil && *rule.Scope != admissionregistrationv1.AllScopes {
						continue
					}
					if one := c.scopeOf(rule); one != "" {
						c.webhook(w, Info, "rules", "scope of rule %s could be %s", matcher.RuleText(rule), one)
					}
				}
			}
		},
	}
}

func neverCalled() Rule {
	return Rule{
		ID: "never-called", Group: groupMatching, Severities: []Severity{Warning}, Source: "practice",
		What: "A request can match the webhook: no match condition is the constant false, no selector contradicts itself, and the scope of a rule is that of its resources.",
		Why:  "The webhook is never called. Nothing reports it.",
		Fix:  "Correct the condition, selector or scope, or remove the webhook.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				if why := policyrules.CanNeverMatch(w.NamespaceSelector, w.ObjectSelector, w.MatchConditions); why != "" {
					c.webhook(w, Warning, "", "it is never called: %s", why)
				}
				for _, rule := range w.Rules {
					if rule.Scope == nil || *rule.Scope == admissionregistrationv1.AllScopes {
						continue
					}
					if of := c.scopeOf(rule); of != "" && of != *rule.Scope {
						c.webhook(w, Warning, "rules", "scope %s of rule %s matches nothing: its resources have the scope %s", *rule.Scope, matcher.RuleText(rule), of)
					}
				}
			}
		},
	}
}

// scopeOf returns the common scope of all resources of a rule, or "" if it is unknown
// or mixed.
func (c *checker) scopeOf(rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.ScopeType {
	out := admissionregistrationv1.ScopeType("")
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			one := c.scopeOfResource(group, resource)
			if one == "" || out != "" && out != one {
				return ""
			}
			out = one
		}
	}
	return out
}

func (c *checker) scopeOfResource(group, resource string) admissionregistrationv1.ScopeType {
	base, _, _ := strings.Cut(resource, "/")
	if resourcenames.ClusterScoped(group, base) {
		return admissionregistrationv1.ClusterScope
	}
	if slices.Contains(resourcenames.Namespaced[group], base) {
		return admissionregistrationv1.NamespacedScope
	}
	for _, d := range c.definitions {
		if d.value.Spec.Group == group && d.value.Spec.Names.Plural == base {
			return admissionregistrationv1.ScopeType(d.value.Spec.Scope) // both use the same words
		}
	}
	return ""
}
