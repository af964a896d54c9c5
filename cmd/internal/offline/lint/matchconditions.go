// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"regexp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

func matchConditions() Rule {
	return Rule{
		ID: "match-conditions", Group: groupMatching, Severities: []Severity{Error, Warning, Info}, Source: fromBoth,
		What: "Match conditions compile, have unique qualified names, number at most 64, do not read object on DELETE, and contain no nested loop. A webhook for frequently written resources has match conditions.",
		Why:  "With failurePolicy Fail, an evaluation error rejects the request; with Ignore it skips the call. A call that is not made costs nothing.",
		Fix:  "Guard object by request.operation != \"DELETE\" or object != null.",
		check: func(c *checker) {
			for _, w := range c.webhooks {
				c.lookAtConditions(w)
			}
		},
	}
}

func (c *checker) lookAtConditions(w *webhook) {
	if len(w.MatchConditions) > 64 {
		c.fixing("Join conditions with &&, or look at the rest in the handler.").webhook(w, Error, "matchConditions", "matchConditions are %d; the API server allows 64", len(w.MatchConditions))
	}
	seen, compile := map[string]bool{}, true
	for i, m := range w.MatchConditions {
		if len(validation.IsQualifiedName(m.Name)) > 0 {
			c.fixing("Name it by letters, digits, dashes, underscores and dots, such as not-excluded.").webhook(w, Error, "matchConditions", "matchConditions[%d] has the name %q, which is not a qualified name", i, m.Name)
		}
		if seen[m.Name] {
			c.fixing("Give each condition a name of its own.").webhook(w, Error, "matchConditions", "matchConditions[%d]: the name %s is used twice", i, m.Name)
		}
		seen[m.Name] = true
		if cause := c.conditions.Problem(m); cause != "" {
			compile = false
			c.fixing("Correct the expression: it is CEL over object, oldObject, request and authorizer, and is a bool.").webhook(w, Error, "matchConditions", "matchConditions[%d] does not compile: %s", i, cause)
		} else if nestedLoops(m.Expression) {
			c.fixing("Look at one list for each condition, or leave it to the handler.").webhook(w, Warning, "matchConditions", "matchConditions[%d] has a loop within a loop; it may exceed the cost that the API server allows", i)
		}
	}
	if compile {
		c.lookAtDelete(w)
	}
	if frequent := w.frequent(); frequent != "" && !w.narrowed() {
		c.fixing("Add a matchCondition or a selector for a property that all relevant objects share.").webhook(w, Info, "rules", "a matchCondition or selector would avoid most calls: %s are written all the time", frequent)
	}
}

// lookAtDelete evaluates the conditions for a deletion, where object is null.
func (c *checker) lookAtDelete(w *webhook) {
	if !slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return matcher.Names(r, admissionregistrationv1.Delete)
	}) {
		return
	}
	r := matcher.Bare("", "v1", "pods", "Pod", "default")
	r.Operation, r.OldObject, r.Object = admissionregistrationv1.Delete, r.Object, nil
	_, name, err := c.conditions.All(context.Background(), w.MatchConditions, r)
	if err == nil {
		return
	}
	i := slices.IndexFunc(w.MatchConditions, func(m admissionregistrationv1.MatchCondition) bool { return m.Name == name })
	if matcher.ReadsObject(w.MatchConditions[i].Expression) {
		c.webhook(w, Warning, "matchConditions", "matchConditions[%d] reads object, which is null on DELETE", i)
	}
}

// frequent returns a frequently written resource that the webhook matches, or "".
func (w *webhook) frequent() string {
	for _, r := range []struct{ group, resource string }{{"coordination.k8s.io", "leases"}, {"", "events"}, {"events.k8s.io", "events"}, {"", "pods"}, {"discovery.k8s.io", "endpointslices"}, {"", "pods/status"}} {
		if w.covers(r.group, r.resource) {
			return r.resource
		}
	}
	return ""
}

var macro = regexp.MustCompile(`\.(all|exists|exists_one|map|filter)\(`)

// nestedLoops reports whether a CEL macro that iterates over a list is inside another
// one.
func nestedLoops(expression string) bool {
	for _, at := range macro.FindAllStringIndex(expression, -1) {
		depth := 1
		for i := at[1]; i < len(expression) && depth > 0; i++ {
			switch expression[i] {
			case '(':
				depth++
			case ')':
				depth--
			case '.':
				if loc := macro.FindStringIndex(expression[i:]); loc != nil && loc[0] == 0 {
					return true
				}
			}
		}
	}
	return false
}
