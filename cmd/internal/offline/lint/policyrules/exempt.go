// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// Exempt returns the rule about the policy that [exempt.Policy] returns. It is not one of
// [Rules], which are about any policy.
func Exempt() Rule {
	return Rule{
		ID: "policy-exempt", Levels: []Level{Error, Warning}, Source: incidents,
		What: "The policy " + exempt.PolicyName + " is installed with the definition of Exemptions, is bound, and refuses everything that the policy of this version refuses.",
		Why:  "It asks for the verb " + exempt.Verb + " while no server runs. Without it, a user who may only write Exemptions can exempt pods from any PodDefault or ClusterPodDefault of the namespace.",
		Fix:  "Apply it again, with the definitions: sallyport manifests --part crd | kubectl apply --server-side -f -.",
		check: func(c *checker) {
			for _, p := range c.Policies {
				if !p.Mutating && p.Name == exempt.PolicyName {
					c.exempts(p)
					return
				}
			}
			validating := admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy")
			for _, d := range c.Objects[apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")] {
				switch {
				case d.Name != sallyportv1alpha1.ExemptionResource+"."+sallyportv1alpha1.GroupName:
				case c.Listed(validating):
					c.find(d, Error, "", "there is no policy "+exempt.PolicyName)
				case len(c.Policies) > 0:
					c.find(d, Warning, "", "the policy "+exempt.PolicyName+" is not among the files")
				default:
					c.skipped(d, "no policy was read")
				}
			}
		},
	}
}

// exempts compares a policy and its bindings with those of this version. What both refuse is
// compared by the text of expressions; more rules and validations only refuse more.
func (c *checker) exempts(p *Policy) {
	own := exempt.Policy()[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec
	if !p.failsClosed() {
		c.find(p.Object, Error, "/spec/failurePolicy", "a policy that cannot be evaluated refuses nothing: failurePolicy must be Fail")
	}
	if len(p.conditions()) > 0 {
		c.find(p.Object, Error, "/spec/matchConditions", "match conditions leave out Exemptions")
	}
	if p.paramKind() != nil {
		c.find(p.Object, Error, "/spec/paramKind", "it depends on a parameter, which the policy of this version does not have")
	}
	m := p.constraints()
	if why := leavesOut(m, own.MatchConstraints.ResourceRules[0]); why != "" {
		c.find(p.Object, Error, "/spec/matchConstraints", "it does not match all Exemptions: "+why)
	}
	changed := 0
	for _, v := range own.Validations {
		if !slices.ContainsFunc(p.Validating.Validations, func(have admissionregistrationv1.Validation) bool { return sameText(have.Expression, v.Expression) }) {
			changed++
		}
	}
	if changed > 0 {
		c.find(p.Object, Error, "/spec/validations", fmt.Sprintf("%d of the %d validations of this version are missing", changed, len(own.Validations)))
	}
	for _, v := range own.Variables {
		if !slices.ContainsFunc(p.variables(), func(have admissionregistrationv1.Variable) bool {
			return have.Name == v.Name && sameText(have.Expression, v.Expression)
		}) {
			c.find(p.Object, Error, "/spec/variables", fmt.Sprintf("the variable %s differs from that of this version", v.Name))
		}
	}
	c.bindsExempt(p, own.MatchConstraints.ResourceRules[0])
}

// bindsExempt requires a binding that refuses what the policy does, wherever Exemptions are.
func (c *checker) bindsExempt(p *Policy, all admissionregistrationv1.NamedRuleWithOperations) {
	var findings []Finding
	for _, b := range p.Bindings {
		find := func(pointer, message string) {
			findings = append(findings, Finding{b.Object, Error, pointer, message, ""})
		}
		before := len(findings)
		if !b.denies() {
			find("/spec/validationActions", "it denies nothing: validationActions must contain Deny")
		}
		if b.ParamRef != nil {
			find("/spec/paramRef", "it depends on a parameter")
		}
		if b.Match != nil {
			if why := leavesOut(b.Match, all); why != "" {
				find("/spec/matchResources", "it does not match all Exemptions: "+why)
			}
		}
		if len(findings) == before {
			return
		}
	}
	switch {
	case len(p.Bindings) > 0:
		for _, f := range findings {
			c.found(f)
		}
	case c.Listed(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding")):
		c.find(p.Object, Error, "", "no binding applies it")
	case len(c.Bindings) > 0:
		c.find(p.Object, Warning, "", "no binding among the files applies it")
	default:
		c.skipped(p.Object, "no binding was read")
	}
}

// leavesOut returns why constraints do not match everything that a rule does, or "".
func leavesOut(m *admissionregistrationv1.MatchResources, all admissionregistrationv1.NamedRuleWithOperations) string {
	if m == nil {
		return "it has no rules"
	}
	switch resource, group := all.Resources[0], all.APIGroups[0]; {
	case len(selectors.Terms(m.NamespaceSelector)) > 0:
		return "namespaceSelector excludes namespaces"
	case len(selectors.Terms(m.ObjectSelector)) > 0:
		return "objectSelector excludes objects, by labels that their authors write"
	case slices.ContainsFunc(m.ExcludeResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return matcher.Covers(r.RuleWithOperations, group, resource)
	}):
		return "excludeResourceRules excludes them"
	case len(m.ResourceRules) == 0: // of a binding: it adds nothing to the policy's
		return ""
	default:
		for _, o := range all.Operations {
			if !slices.ContainsFunc(m.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
				return len(r.ResourceNames) == 0 && matcher.CoversVersion(r.RuleWithOperations, schema.GroupVersionResource{Group: group, Version: all.APIVersions[0], Resource: resource}, o) &&
					(r.Scope == nil || *r.Scope != admissionregistrationv1.ClusterScope)
			}) {
				return fmt.Sprintf("no rule has %s of %s", o, resourceName(group, resource))
			}
		}
	}
	return ""
}

// sameText ignores how an expression is wrapped.
func sameText(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }
