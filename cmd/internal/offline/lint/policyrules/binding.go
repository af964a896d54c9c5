// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func unbound() Rule {
	return Rule{
		ID: "policy-unbound", Levels: []Level{Warning}, Source: docsVAP,
		What: "Each policy has a binding.",
		Why:  "A policy without a binding is never evaluated. Nothing reports it.",
		Fix:  "Add a binding with this policyName; give it matchResources if the policy is not for the whole cluster.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if len(p.Bindings) > 0 {
					continue
				}
				if c.AllBindings || len(c.Bindings) > 0 || len(p.programs().errs) > 0 {
					c.find(p.Object, Warning, "", "no binding says where the policy applies: it is never evaluated")
				} else {
					c.skipped(p.Object, "no such ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding among the files")
				}
			}
		},
	}
}

func bindingTarget() Rule {
	return Rule{
		ID: "policy-binding-target", Levels: []Level{Error, Warning}, Source: docsVAP,
		What: "The policy that a binding names exists, and is of the binding's kind.",
		Why:  "The binding has no effect. Nothing reports it.",
		Fix:  "Correct policyName, or add the policy.",
		check: func(c *checker) {
			for _, b := range c.Bindings {
				if b.Policy != nil || b.PolicyName == "" {
					continue
				}
				other := slices.ContainsFunc(c.Policies, func(p *Policy) bool { return p.Name == b.PolicyName })
				switch {
				case other:
					c.find(b.Object, Error, "/spec/policyName", fmt.Sprintf("the policy %s is of the other kind: a %s has no effect on it", b.PolicyName, b.Kind))
				case c.AllPolicies:
					c.find(b.Object, Error, "/spec/policyName", "there is no policy "+b.PolicyName)
				case len(c.Policies) > 0:
					c.find(b.Object, Warning, "/spec/policyName", "the policy "+b.PolicyName+" is not among the files")
				default:
					c.skipped(b.Object, "no policy among the files")
				}
			}
		},
	}
}

// isFalse reports whether an expression is the literal false.
func isFalse(e ast.Expr) bool {
	return e != nil && e.Kind() == ast.LiteralKind && e.AsLiteral() == types.False
}

// CanNeverMatch returns why selectors and match conditions exclude every request, or "".
func CanNeverMatch(namespaces, objects *metav1.LabelSelector, conditions []admissionregistrationv1.MatchCondition) string {
	switch {
	case selectors.Contradicts(namespaces):
		return "no namespace can match its namespaceSelector, which contradicts itself"
	case selectors.Contradicts(objects):
		return "no object can match its objectSelector, which contradicts itself"
	}
	for _, m := range conditions {
		if isFalse(reads.Parse(m.Expression)) {
			return "the condition " + m.Name + " is always false"
		}
	}
	return ""
}

func neverMatches() Rule {
	return Rule{
		ID: "policy-never", Levels: []Level{Warning}, Source: incidents,
		What: "A policy and its bindings can match a request: no match condition is the constant false, no selector contradicts itself, and the scope of a rule is that of its resources.",
		Why:  "The policy is never evaluated. Nothing reports it.",
		Fix:  "Correct the condition, selector or scope, or delete the binding to switch the policy off.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				var namespaces, objects *metav1.LabelSelector
				if m := p.constraints(); m != nil {
					namespaces, objects = m.NamespaceSelector, m.ObjectSelector
				}
				if why := CanNeverMatch(namespaces, objects, p.conditions()); why != "" {
					c.find(p.Object, Warning, "/spec", "the policy is never evaluated: "+why)
				}
				for _, t := range c.targets(p) {
					scope := p.rules()[t.rule].Scope
					if scope == nil || *scope == admissionregistrationv1.AllScopes || (*scope == admissionregistrationv1.NamespacedScope) == t.Namespaced {
						continue
					}
					c.find(p.Object, Warning, rulePointer(t.rule), fmt.Sprintf("scope %s never matches %s", *scope, t.GroupVersionResource.Resource))
				}
			}
			for _, b := range c.Bindings {
				if b.Match == nil {
					continue
				}
				if why := CanNeverMatch(b.Match.NamespaceSelector, b.Match.ObjectSelector, nil); why != "" {
					c.find(b.Object, Warning, "/spec/matchResources", "the binding never applies: "+why)
				}
			}
		},
	}
}

func auditOnly() Rule {
	return Rule{
		ID: "policy-audit-only", Levels: []Level{Info}, Source: docsVAP,
		What: "Some binding of a validating policy has the action Deny.",
		Why:  "With Audit and Warn alone, objects that break the policy are stored. That is right while a policy is introduced, and easily forgotten.",
		Fix:  "Add Deny to validationActions once no object violates the policy.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.Mutating || len(p.Bindings) == 0 || len(p.Validating.Validations) == 0 || len(p.enforcing()) > 0 {
					continue
				}
				for _, b := range p.Bindings {
					c.find(b.Object, Info, "/spec/validationActions", "validationActions has no Deny: the policy refuses nothing")
				}
			}
		},
	}
}

func failOpen() Rule {
	return Rule{
		ID: "policy-fail-open", Levels: []Level{Info}, Source: docsVAP,
		What: "A validating policy that denies has failurePolicy Fail.",
		Why:  "With Ignore, an object for which an expression fails, such as one without a field that the expression reads, is stored unchecked.",
		Fix:  "Set failurePolicy: Fail, and guard what may be missing with has() or optional fields.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if !p.Mutating && !p.failsClosed() && len(p.enforcing()) > 0 {
					c.find(p.Object, Info, "/spec/failurePolicy", "failurePolicy Ignore stores objects for which the policy cannot be evaluated")
				}
			}
		},
	}
}

func message() Rule {
	return Rule{
		ID: "policy-message", Levels: []Level{Warning}, Source: docsVAP,
		What: "A validation of a policy that denies has a message or a messageExpression.",
		Why:  "Without one, users read the expression: \"failed expression: …\".",
		Fix:  "Say in message what is wrong and what to do.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.Mutating || len(p.enforcing()) == 0 {
					continue
				}
				for i, v := range p.Validating.Validations {
					if strings.TrimSpace(v.Message) == "" && strings.TrimSpace(v.MessageExpression) == "" {
						c.find(p.Object, Warning, fmt.Sprintf("/spec/validations/%d", i), fmt.Sprintf("validations[%d] refuses objects without a message", i))
					}
				}
			}
		},
	}
}
