// SPDX-License-Identifier: Apache-2.0

package policyfields

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const onPods = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}"

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte("{"+text+"}"), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// Test compares with what the API server says, as TestWhatLintAndChainAcceptOnARealAPIServer of package chain has seen.
func Test(t *testing.T) {
	validating := func(more string) field.ErrorList {
		return ValidatingPolicy("name", read[admissionregistrationv1.ValidatingAdmissionPolicySpec](t, onPods+", "+more))
	}
	mutating := func(more string) field.ErrorList {
		return MutatingPolicy(read[admissionregistrationv1.MutatingAdmissionPolicySpec](t, onPods+", "+more))
	}
	binding := func(text string) field.ErrorList {
		return ValidatingBinding(read[admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec](t, text))
	}
	const validations, patch, bound = "validations: [{expression: 'true'}]", "mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}]", "policyName: p, validationActions: [Deny]"
	for name, tc := range map[string]struct {
		got  field.ErrorList
		want string
	}{
		"a validating policy":      {validating(validations + ", failurePolicy: Ignore, paramKind: {apiVersion: v1, kind: ConfigMap}, variables: [{name: x}], matchConditions: [{name: a.b/c}]"), ""},
		"a mutating policy":        {mutating(patch + ", reinvocationPolicy: Never"), ""},
		"a binding":                {binding(bound + ", paramRef: {name: a, parameterNotFoundAction: Deny}"), ""},
		"a reason":                 {validating("validations: [{expression: 'true', reason: Unauthorized}]"), `validations[0].reason: Unsupported value: "Unauthorized"`},
		"a blank message":          {validating("validations: [{expression: 'true', message: ' '}]"), "validations[0].message is blank"},
		"lines in a message":       {validating(`validations: [{expression: 'true', message: "a\nb"}]`), "validations[0].message has line breaks"},
		"nothing to validate":      {validating(""), "validations and auditAnnotations are missing"},
		"a key of an annotation":   {validating("auditAnnotations: [{key: a b}]"), "auditAnnotations[0].key: Invalid value"},
		"a key twice":              {validating("auditAnnotations: [{key: a}, {key: a}]"), "auditAnnotations[1].key: Duplicate value"},
		"a failure policy":         {validating(validations + ", failurePolicy: Never"), "failurePolicy: Unsupported value"},
		"a kind of parameters":     {validating(validations + ", paramKind: {kind: ConfigMap}"), "paramKind.apiVersion: Invalid value"},
		"a condition's name":       {validating(validations + ", matchConditions: [{name: a b}]"), "matchConditions[0].name: Invalid value"},
		"a condition's name twice": {validating(validations + ", matchConditions: [{name: a}, {name: a}]"), "matchConditions[1].name: Duplicate value"},
		"a variable's name":        {validating(validations + ", variables: [{name: 1x}]"), "variables[0].name: Invalid value"},
		"a word of CEL":            {validating(validations + ", variables: [{name: namespace}]"), "variables[0].name: Invalid value"},
		"a reinvocation policy":    {mutating(patch + ", reinvocationPolicy: Always"), "reinvocationPolicy: Unsupported value"},
		"no reinvocation policy":   {mutating(patch), "reinvocationPolicy is missing"},
		"no mutations":             {mutating("reinvocationPolicy: Never"), "mutations are missing"},
		"a patch of another type":  {mutating("reinvocationPolicy: Never, mutations: [{patchType: ApplyConfiguration, jsonPatch: {expression: '[]'}}]"), "mutations[0] patchType does not fit"},
		"actions":                  {binding("policyName: p, validationActions: [Refuse]"), "validationActions[0]: Unsupported value"},
		"both actions":             {binding("policyName: p, validationActions: [Deny, Warn]"), "validationActions has both Deny and Warn"},
		"no policy":                {binding("validationActions: [Deny]"), "policyName is missing"},
		"no action":                {binding("policyName: p"), "validationActions are missing"},
		"a name and a selector":    {binding(bound + ", paramRef: {name: a, selector: {}, parameterNotFoundAction: Deny}"), "paramRef has to have either a name or a selector"},
		"no action without one":    {binding(bound + ", paramRef: {name: a}"), "parameterNotFoundAction is missing"},
		"a selector":               {binding(bound + ", matchResources: {objectSelector: {matchLabels: {a: b c}}}"), "matchResources.objectSelector.matchLabels: Invalid value"},
		"a match policy":           {binding(bound + ", matchResources: {matchPolicy: Some}"), "matchResources.matchPolicy: Unsupported value"},
		"an operation":             {binding(bound + ", matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [create], resources: [pods]}]}"), "matchResources.resourceRules[0]"},
		"a resource's name twice":  {binding(bound + ", matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], resourceNames: [a, a]}]}"), "resourceNames: Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Join(tc.got)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	if errs := ValidatingPolicy("n", &admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}}}); len(errs) < 2 {
		t.Errorf("a policy without rules: %v", errs)
	}
}
