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

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func unknownResource() Rule {
	return Rule{
		ID: "policy-unknown-resource", Levels: []Level{Error}, Source: incidents,
		What: "The resources of a policy's rules exist, with their plural names and in the named group.",
		Why:  "The API server accepts any name. The policy is never evaluated, and nothing reports it.",
		Fix:  "Use apiGroups and resources as 'kubectl api-resources' prints them, and \"\" for the core group.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for i, r := range p.rules() {
					for _, group := range r.APIGroups {
						for _, resource := range r.Resources {
							if c.lacks(group, resource) {
								name := "group " + group
								if group == "" {
									name = "the core group"
								}
								c.find(p.Object, Error, rulePointer(i), fmt.Sprintf("%s has no resource %s", name, resource))
							}
						}
					}
				}
			}
		},
	}
}

// lacks reports whether a group is known to have no such resource.
func (c *checker) lacks(group, resource string) bool {
	base, _, _ := strings.Cut(resource, "/")
	return c.Groups[group] && base != "*" && !slices.ContainsFunc(c.Resources, func(r Resource) bool { return r.Group == group && r.GroupVersionResource.Resource == base })
}

func ineffective() Rule {
	return Rule{
		ID: "policy-ineffective", Levels: []Level{Warning}, Source: docsVAP,
		What: "No rule names admission policies, their bindings, or reviews of tokens and access.",
		Why:  "The API server never evaluates policies for them: they could lock all users out. The rule gives false confidence.",
		Fix:  "Drop the rule. A webhook or policy of a static manifest sees policies.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for i, r := range p.rules() {
					for _, resource := range r.Resources {
						base, _, _ := strings.Cut(resource, "/")
						policies := slices.Contains(r.APIGroups, "admissionregistration.k8s.io") && (strings.HasSuffix(base, "policies") || strings.HasSuffix(base, "policybindings"))
						reviews := base != "*" && strings.HasSuffix(base, "reviews") && (slices.Contains(r.APIGroups, "authentication.k8s.io") || slices.Contains(r.APIGroups, "authorization.k8s.io"))
						if policies || reviews {
							c.find(p.Object, Warning, rulePointer(i), "the API server evaluates no policy for "+base)
						}
					}
				}
			}
		},
	}
}

func exact() Rule {
	return Rule{
		ID: "policy-match-policy", Levels: []Level{Warning}, Source: docsVAP,
		What: "matchPolicy is unset or Equivalent.",
		Why:  "With Exact, requests through another version or group of the same resource bypass the policy.",
		Fix:  "Remove matchPolicy.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				m := p.constraints()
				if m == nil || m.MatchPolicy == nil || *m.MatchPolicy != admissionregistrationv1.Exact || !slices.ContainsFunc(m.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
					return !slices.Contains(r.APIVersions, "*")
				}) {
					continue
				}
				c.find(p.Object, Warning, "/spec/matchConstraints/matchPolicy", "matchPolicy Exact lets requests through other versions bypass the policy")
			}
		},
	}
}

func clusterScoped() Rule {
	return Rule{
		ID: "policy-cluster-scoped", Levels: []Level{Warning}, Source: docsVAP,
		What: "No namespaceSelector is meant to narrow a policy for cluster-scoped resources.",
		Why:  "It never excludes cluster-scoped objects, apart from namespaces themselves: the policy applies to all of them.",
		Fix:  "Use an objectSelector, resourceNames or a match condition.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for _, b := range p.Bindings {
					for _, at := range []struct {
						o       *Object
						m       *admissionregistrationv1.MatchResources
						pointer string
					}{{p.Object, p.constraints(), "/spec/matchConstraints/namespaceSelector"}, {b.Object, b.Match, "/spec/matchResources/namespaceSelector"}} {
						if at.m == nil || len(selectors.Terms(at.m.NamespaceSelector)) == 0 {
							continue
						}
						for _, t := range c.targets(p) {
							if !t.Namespaced && t.Kind != "Namespace" {
								c.find(at.o, Warning, at.pointer, "namespaceSelector does not exclude "+t.GroupVersionResource.Resource+", which are cluster-scoped")
								break
							}
						}
					}
				}
			}
		},
	}
}

func optOut() Rule {
	return Rule{
		ID: "policy-opt-out", Levels: []Level{Warning}, Source: docsVAP,
		What: "No objectSelector lets a label exclude an object from a validating policy that denies.",
		Why:  "Users who write the object write its labels: they can switch the policy off.",
		Fix:  "Exclude namespaces by namespaceSelector, or users by a match condition.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if p.Mutating {
					continue
				}
				for _, b := range p.enforcing() {
					for _, at := range []struct {
						o       *Object
						m       *admissionregistrationv1.MatchResources
						pointer string
					}{{p.Object, p.constraints(), "/spec/matchConstraints/objectSelector"}, {b.Object, b.Match, "/spec/matchResources/objectSelector"}} {
						if at.m == nil {
							continue
						}
						for _, t := range selectors.Terms(at.m.ObjectSelector) {
							if t.Operator == metav1.LabelSelectorOpNotIn || t.Operator == metav1.LabelSelectorOpDoesNotExist {
								c.find(at.o, Warning, at.pointer, "the label "+t.Key+" excludes an object from the policy, and users set labels")
							}
						}
					}
				}
			}
		},
	}
}

func authorizer() Rule {
	return Rule{
		ID: "policy-authorizer", Levels: []Level{Warning}, Source: docsVAP,
		What: "authorizer.group(…).resource(…) names a resource that exists, in the plural, and check(…) has a verb.",
		Why:  "Nothing grants a right to a resource that does not exist: the check is false for all but administrators, and the policy refuses all other users.",
		Fix:  "Use the group and the plural that 'kubectl api-resources' prints.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for _, e := range p.all() {
					visit(e.tree, func(x ast.Expr) {
						if x.Kind() != ast.CallKind || !x.AsCall().IsMemberFunction() {
							return
						}
						call := x.AsCall()
						switch {
						case call.FunctionName() == "resource" && len(call.Args()) == 1:
							resource, ok := stringLiteral(call.Args()[0])
							target := call.Target()
							if !ok || target.Kind() != ast.CallKind || target.AsCall().FunctionName() != "group" {
								return
							}
							group, ok := stringLiteral(target.AsCall().Args()[0])
							if ok && c.lacks(group, resource) {
								c.find(p.Object, Warning, e.pointer, fmt.Sprintf("%s checks rights to %s, which the API server does not have", e.field(), resourceName(group, resource)))
							}
						case call.FunctionName() == "check" && len(call.Args()) == 1:
							if verb, ok := stringLiteral(call.Args()[0]); ok && verb != strings.ToLower(verb) {
								c.find(p.Object, Warning, e.pointer, fmt.Sprintf("%s checks the verb %q: verbs are in lower case", e.field(), verb))
							}
						}
					})
				}
			}
		},
	}
}

func stringLiteral(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := e.AsLiteral().(types.String)
	return string(value), ok
}

func repeatsWebhook() Rule {
	return Rule{
		ID: "policy-repeats-webhook", Levels: []Level{Info}, Source: docsVAP,
		What: "No webhook of the same kind of admission has exactly the rules of a policy.",
		Why:  "Both may be there for the same check, such as during a migration: each refuses with its own message, and a change has to be made twice.",
		Fix:  "Remove the webhook once the policy is enforced, or say in an annotation why both are needed.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				for _, w := range c.Webhooks {
					if w.Mutating != p.Mutating || len(w.Rules) != len(p.rules()) || len(w.Rules) == 0 {
						continue
					}
					same := true
					for i, r := range p.rules() {
						same = same && len(r.ResourceNames) == 0 && slices.Equal(r.APIGroups, w.Rules[i].APIGroups) && slices.Equal(r.Resources, w.Rules[i].Resources) && slices.Equal(r.Operations, w.Rules[i].Operations)
					}
					if same {
						c.find(p.Object, Info, "/spec/matchConstraints", "the webhook "+w.Title+" has the same rules")
					}
				}
			}
		},
	}
}
