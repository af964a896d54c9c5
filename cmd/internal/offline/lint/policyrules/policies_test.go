// SPDX-License-Identifier: Apache-2.0

package policyrules

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestAPolicyMatchesAnOperationThatNothingExcludes(t *testing.T) {
	const create, update = admissionregistrationv1.Create, admissionregistrationv1.Update
	rule := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.NamedRuleWithOperations {
		return []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
		}}}
	}
	byName := rule(create, update)
	byName[0].ResourceNames = []string{"one"}
	for name, tc := range map[string]struct {
		rules, excluded, ofBinding []admissionregistrationv1.NamedRuleWithOperations
		want                       bool
	}{
		"a rule":                               {rules: rule(create), want: true},
		"a rule for another operation":         {rules: rule(admissionregistrationv1.Delete)},
		"all is excluded":                      {rules: rule(create, update), excluded: rule("*")},
		"one operation is excluded":            {rules: rule(create, update), excluded: rule(create), want: true},
		"the only one is excluded":             {rules: rule(create), excluded: rule(create)},
		"one object is excluded":               {rules: rule(create), excluded: byName, want: true},
		"a rule for one object":                {rules: byName},
		"the binding names another operation":  {rules: rule(create), ofBinding: rule(update)},
		"the binding names one of two of them": {rules: rule(create, update), ofBinding: rule(update), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Policy{Validating: &admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: tc.rules, ExcludeResourceRules: tc.excluded}}}
			b := &Binding{Match: &admissionregistrationv1.MatchResources{ResourceRules: tc.ofBinding}}
			if got := p.matches(b, "", "nodes", create, update); got != tc.want {
				t.Errorf("matches: %t", got)
			}
		})
	}
}
