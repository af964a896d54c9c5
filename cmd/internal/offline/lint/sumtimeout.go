// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func sumTimeout() Rule {
	const warnFrom, limit = 30, 34
	const compared = 50 // beyond it, webhooks are too many even if some exclude others
	return Rule{
		ID: "sum-timeout", Group: groupTime, Severities: []Severity{Warning, Info}, Source: "kubernetes/kubernetes#128162",
		What: "The timeouts of all mutating webhooks that can match one request, plus the longest of the validating ones, add up to less than 30 s. Webhooks that exclude each other by selectors or opposite conditions count once.",
		Why:  "A write has at most 34 s in the API server, and mutating webhooks are called one after the other: webhooks that are down block it even if each of them ignores failures.",
		Fix:  "Shorten timeouts, or narrow rules and selectors.",
		check: func(c *checker) {
			said := map[string]bool{}
			for _, r := range c.requests() {
				sum, longest := int32(0), int32(0)
				var names []string
				var mutating []*webhook
				for _, w := range c.webhooks {
					if !w.covers(r.group, r.resource, r.operation) {
						continue
					}
					if w.config.mutating {
						sum += w.seconds()
						names = append(names, w.title())
						mutating = append(mutating, w)
					} else {
						longest = max(longest, w.seconds())
					}
				}
				if sum += longest; len(mutating) > 0 && sum >= warnFrom && len(mutating) <= compared {
					sum = together(mutating) + longest
				}
				if len(mutating) == 0 || sum < warnFrom || said[strings.Join(names, " ")+fmt.Sprint(sum)] {
					continue
				}
				said[strings.Join(names, " ")+fmt.Sprint(sum)] = true
				severity := Warning
				if sum < limit {
					severity = Info
				}
				c.webhook(mutating[len(mutating)-1], severity, "", "mutating webhooks that can match %s %s: %d; their timeouts, and the longest of the validating ones, add up to %d s of %d s",
					r.operation, resourceName(r.group, r.resource), len(names), sum, limit)
			}
		},
	}
}

// together sums timeouts. Of webhooks that exclude each other, the longest counts.
func together(webhooks []*webhook) int32 {
	var counted []*webhook
next:
	for _, w := range webhooks {
		for i, other := range counted {
			if exclusive(w, other) {
				if w.seconds() > other.seconds() {
					counted[i] = w
				}
				continue next
			}
		}
		counted = append(counted, w)
	}
	sum := int32(0)
	for _, w := range counted {
		sum += w.seconds()
	}
	return sum
}

// aRequest is a kind of request that some rule names.
type aRequest struct {
	group, resource string
	operation       admissionregistrationv1.OperationType
}

// requests returns the requests named by rules of mutating webhooks, without
// duplicates, in order. A wildcard counts as a name: the other rules name what it
// shares with them.
func (in *Inventory) requests() []aRequest {
	all := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect}
	seen := map[aRequest]bool{}
	var out []aRequest
	for _, w := range in.webhooks {
		if !w.config.mutating {
			continue
		}
		for _, rule := range w.Rules {
			operations := rule.Operations
			if slices.Contains(operations, admissionregistrationv1.OperationAll) {
				operations = all
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, operation := range operations {
						r := aRequest{group, resource, operation}
						if !seen[r] {
							seen[r] = true
							out = append(out, r)
						}
					}
				}
			}
		}
	}
	return out
}
