// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The definition of Exemptions, their policy and its binding, as installed.
func TestThePolicyOfExemptionsIsAsStrictAsInstalled(t *testing.T) {
	type objs struct{ definition, policy, binding map[string]any }
	set := func(object map[string]any, value any, path string) {
		t.Helper()
		if err := unstructured.SetNestedField(object, value, strings.Split(path, ".")...); err != nil {
			t.Fatal(err)
		}
	}
	list := func(object map[string]any, name string) []any {
		t.Helper()
		out, _, err := unstructured.NestedSlice(object, "spec", name)
		if err != nil || len(out) < 2 {
			t.Fatalf("%d %s, %v", len(out), name, err)
		}
		return out
	}
	rule := func(change map[string]any) []any {
		out := map[string]any{"apiGroups": []any{"sallyport.io"}, "apiVersions": []any{"v1alpha1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"exemptions"}, "scope": "Namespaced"}
		maps.Copy(out, change)
		return []any{out}
	}
	labelled := map[string]any{"matchLabels": map[string]any{"a": "b"}}
	const policy, binding = "ValidatingAdmissionPolicy/exempt.sallyport.io", "ValidatingAdmissionPolicyBinding/exempt.sallyport.io"
	for name, tc := range map[string]struct {
		change func(*objs)
		want   string
	}{
		"nothing is changed":           {func(*objs) {}, ""},
		"there are no Exemptions":      {func(o *objs) { *o = objs{} }, ""},
		"the policy is missing":        {func(o *objs) { o.policy = nil }, "CustomResourceDefinition/exemptions.sallyport.io: there is no policy exempt.sallyport.io"},
		"the binding is missing":       {func(o *objs) { o.binding = nil }, policy + ": no binding applies it"},
		"failures let Exemptions pass": {func(o *objs) { set(o.policy, "Ignore", "spec.failurePolicy") }, policy + ": a policy that cannot be evaluated refuses nothing: failurePolicy must be Fail"},
		"a condition leaves some out": {func(o *objs) {
			set(o.policy, []any{map[string]any{"name": "x", "expression": "false"}}, "spec.matchConditions")
		}, policy + ": match conditions leave out Exemptions"},
		"a parameter decides": {func(o *objs) {
			set(o.policy, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "spec.paramKind")
		}, policy + ": it depends on a parameter, which the policy of this version does not have"},
		"namespaces are selected":  {func(o *objs) { set(o.policy, labelled, "spec.matchConstraints.namespaceSelector") }, policy + ": it does not match all Exemptions: namespaceSelector excludes namespaces"},
		"labels of objects decide": {func(o *objs) { set(o.policy, labelled, "spec.matchConstraints.objectSelector") }, policy + ": it does not match all Exemptions: objectSelector excludes objects, by labels that their authors write"},
		"Exemptions are excluded":  {func(o *objs) { set(o.policy, rule(nil), "spec.matchConstraints.excludeResourceRules") }, policy + ": it does not match all Exemptions: excludeResourceRules excludes them"},
		"updates are left out": {func(o *objs) {
			set(o.policy, rule(map[string]any{"operations": []any{"CREATE"}}), "spec.matchConstraints.resourceRules")
		}, policy + ": it does not match all Exemptions: no rule has UPDATE of exemptions.sallyport.io"},
		"only some names are matched": {func(o *objs) {
			set(o.policy, rule(map[string]any{"resourceNames": []any{"a"}}), "spec.matchConstraints.resourceRules")
		}, policy + ": it does not match all Exemptions: no rule has CREATE of exemptions.sallyport.io"},
		"only cluster scope is matched": {func(o *objs) {
			set(o.policy, rule(map[string]any{"scope": "Cluster"}), "spec.matchConstraints.resourceRules")
		}, policy + ": it does not match all Exemptions: no rule has CREATE of exemptions.sallyport.io"},
		"another version is matched": {func(o *objs) {
			set(o.policy, rule(map[string]any{"apiVersions": []any{"v9"}}), "spec.matchConstraints.resourceRules")
		}, policy + ": it does not match all Exemptions: no rule has CREATE of exemptions.sallyport.io"},
		"more is matched": {func(o *objs) {
			set(o.policy, rule(map[string]any{"operations": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "scope": "*"}), "spec.matchConstraints.resourceRules")
		}, ""},
		"a validation is missing": {func(o *objs) { set(o.policy, list(o.policy, "validations")[1:], "spec.validations") }, policy + ": 1 of the 16 validations of this version are missing"},
		"a validation allows more": {func(o *objs) {
			v := list(o.policy, "validations")
			set(v[0].(map[string]any), v[0].(map[string]any)["expression"].(string)+" || true", "expression")
			set(o.policy, v, "spec.validations")
		}, policy + ": 1 of the 16 validations of this version are missing"},
		"another validation refuses too": {func(o *objs) {
			set(o.policy, append(list(o.policy, "validations"), map[string]any{"expression": "false"}), "spec.validations")
		}, ""},
		"expressions are wrapped": {func(o *objs) {
			v := list(o.policy, "variables")
			set(v[0].(map[string]any), strings.ReplaceAll(v[0].(map[string]any)["expression"].(string), " ", "\n  "), "expression")
			set(o.policy, v, "spec.variables")
		}, ""},
		"a variable hides what is wider": {func(o *objs) {
			v := list(o.policy, "variables")
			set(v[1].(map[string]any), "[]", "expression")
			set(o.policy, v, "spec.variables")
		}, policy + ": the variable wider differs from that of this version"},
		"the binding only warns": {func(o *objs) { set(o.binding, []any{"Warn", "Audit"}, "spec.validationActions") }, binding + ": it denies nothing: validationActions must contain Deny"},
		"the binding also warns": {func(o *objs) { set(o.binding, []any{"Audit", "Deny"}, "spec.validationActions") }, ""},
		"the binding has a parameter": {func(o *objs) {
			set(o.binding, map[string]any{"name": "x", "parameterNotFoundAction": "Allow"}, "spec.paramRef")
		}, binding + ": it depends on a parameter"},
		"the binding selects namespaces": {func(o *objs) { set(o.binding, labelled, "spec.matchResources.namespaceSelector") }, binding + ": it does not match all Exemptions: namespaceSelector excludes namespaces"},
		"the binding has rules": {func(o *objs) {
			set(o.binding, rule(map[string]any{"operations": []any{"UPDATE"}}), "spec.matchResources.resourceRules")
		}, binding + ": it does not match all Exemptions: no rule has CREATE of exemptions.sallyport.io"},
		"the binding is of another": {func(o *objs) { set(o.binding, "x", "spec.policyName") }, policy + ": no binding applies it"},
	} {
		t.Run(name, func(t *testing.T) {
			o := objs{installed(t, "sallyport.io_exemptions.yaml", 0), installed(t, "exemptions.yaml", 0), installed(t, "exemptions.yaml", 1)}
			tc.change(&o)
			var all []Object
			for _, each := range []map[string]any{o.definition, o.policy, o.binding} {
				if each == nil {
					continue
				}
				u := unstructured.Unstructured{Object: each}
				raw, err := json.Marshal(each)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), Raw: raw})
			}
			in, err := ReadCluster(all, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range Run(in, Options{Rules: []string{"policy-exempt"}}).Findings {
				got = append(got, f.Object+": "+f.Message)
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// installed reads an object of config/crd.
func installed(t *testing.T, file string, i int) (out map[string]any) {
	t.Helper()
	data, err := os.ReadFile("../../../../config/crd/" + file)
	if err == nil {
		err = json.Unmarshal(objects(t, file, []byte(strings.TrimPrefix(string(data), "---\n")))[i].Raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAPolicyOfExemptionsThatWasNotReadIsNotMissing(t *testing.T) {
	definition, err := json.Marshal(installed(t, "sallyport.io_exemptions.yaml", 0))
	if err != nil {
		t.Fatal(err)
	}
	in, err := ReadFiles([]Object{{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "exemptions.sallyport.io", Raw: definition}})
	if err != nil {
		t.Fatal(err)
	}
	report := Run(in, Options{Rules: []string{"policy-exempt"}})
	if len(report.Findings) > 0 || len(report.Skipped) != 1 || report.Skipped[0].Reason != "no policy was read" {
		t.Errorf("%+v", report)
	}
}
