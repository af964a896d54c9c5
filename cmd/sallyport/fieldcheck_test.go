// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const farmDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: farms.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Farm, plural: farms}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: self.size != 13, message: thirteen brings bad luck}
            properties:
              size: {type: integer, minimum: 1}
              token: {type: string, pattern: '^[a-z]+$'}
              color: {type: string, enum: [red, green]}
              more: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - {name: v2, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

func TestObjectsAreCheckedAsTheAPIServerDoes(t *testing.T) {
	farm := func(spec string) string {
		return farmDefinition + "---\napiVersion: example.com/v1\nkind: Farm\nmetadata: {name: f}\nspec: " + spec + "\n"
	}
	const podDefault = "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: p}\nspec:\n  selector: {}\n"
	for name, tc := range map[string]struct {
		text string
		want []string // nil if valid
	}{
		"a good pod":                                {text: otherYAML},
		"all unknown fields of a pod":               {otherYAML + "    imagePullPolcy: Always\n    sucurityContext: {}\n  hostnetwork: true\n", []string{`stdin:9: unknown field "spec.containers[0].imagePullPolcy": did you mean imagePullPolicy?`, `stdin:10: unknown field "spec.containers[0].sucurityContext": did you mean securityContext?`, `stdin:11: unknown field "spec.hostnetwork": did you mean hostNetwork?`}},
		"a wrong type in a Service":                 {"apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: 80}\n", []string{"stdin:4: spec.ports: want a sequence, got a number"}},
		"a deep field of a Deployment":              {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n      container: []\n", []string{`stdin:7: unknown field "spec.template.spec.container": did you mean containers?`}},
		"a value that is no label":                  {strings.Replace(otherYAML, "name: other\n", "name: other\n  labels: {a: 'x y'}\n", 1), []string{"metadata.labels: Invalid value: "}},
		"evn, vlaue and a missing name":             {podDefault + "  evn: []\n  env:\n  - {vlaue: s3cret, name: A}\n  - value: s3cret\n", []string{`stdin:6: unknown field "spec.evn": did you mean env?`, `stdin:8: unknown field "spec.env[0].vlaue": did you mean value?`, "stdin:9: spec.env[1].name: Required value"}},
		"a PodDefault without selector":             {"apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: p}\nspec: {}\n", []string{"stdin:4: spec.selector: Required value"}},
		"a member that stands there twice, in JSON": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}`, []string{"duplicate key metadata.name"}},
		"a member that stands there twice, in YAML": {otherYAML + "spec: {}\n", []string{`key "spec" already set in map`}},

		"a good custom resource":            {text: farm("{size: 1, more: {anything: 1}}")},
		"an unknown field of a resource":    {farm("{size: 1, sise: 2, colour: red}"), []string{`unknown field "spec.colour": did you mean color?`, `unknown field "spec.sise": did you mean size?`}},
		"a field that is required":          {farm("{}"), []string{"spec.size: Required value"}},
		"a wrong type in a custom resource": {farm("{size: big}"), []string{"spec.size: Invalid value: must be of type integer"}},
		"a number out of range":             {farm("{size: 0}"), []string{"spec.size: Invalid value: should be greater than or equal to 1"}},
		"one of an enum":                    {farm("{size: 1, color: s3cret}"), []string{"spec.color: Unsupported value"}},
		"a pattern":                         {farm("{size: 1, token: S3cret}"), []string{"spec.token: Invalid value: should match"}},
		"a rule":                            {farm("{size: 13}"), []string{"spec: Invalid value: thirteen brings bad luck"}},
		"a version that is not served":      {strings.Replace(farm("{size: 1}"), "apiVersion: example.com/v1\n", "apiVersion: example.com/v2\n", 1), []string{"stdin:28: CustomResourceDefinition farms.example.com: it does not serve the version v2"}},
		"a name that is illegal":            {strings.Replace(farm("{size: 1}"), "{name: f}", "{name: F}", 1), []string{"metadata.name: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyportWith(t, tc.text, "review", "-f", "-")
			if tc.want == nil {
				if got.status != exitOK || strings.Contains(got.stderr, "not checked") {
					t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
				}
				return
			}
			got.wantError(t, tc.want...)
			if strings.Contains(strings.ToLower(got.stderr), "s3cret") {
				t.Errorf("it gives a value away:\n%s", got.stderr)
			}
		})
	}
}

func TestFieldsThatAreNotKnownMayBeNewer(t *testing.T) {
	newer := otherYAML + "  newer: {}\n"
	if got := sallyportWith(t, newer, "review", "-f", "-", "--validate", "warn"); got.status != exitOK || got.stderr != "warning: stdin:9: unknown field \"spec.newer\"\n" {
		t.Errorf("warn: status %d, stderr:\n%s", got.status, got.stderr)
	}
	sallyportWith(t, newer, "review", "-f", "-", "--validate", "ignore").want(t, exitOK, "Pod other: allowed, unchanged\n", "")
	sallyportWith(t, newer, "review", "-f", "-", "--validate", "maybe").wantError(t, `--validate "maybe": choose strict, warn or ignore`)
	// Objects stored in a cluster are valid there.
	stored := strings.Replace(newer, "name: other\n", "name: other\n  uid: a\n", 1)
	if got := sallyportWith(t, stored, "review", "-f", "-"); got.status != exitOK || !strings.HasPrefix(got.stderr, "warning: stdin:10: unknown field") {
		t.Errorf("stored: status %d, stderr:\n%s", got.status, got.stderr)
	}
}

func TestKindsOfWhichNothingIsKnownAreNamed(t *testing.T) {
	const text = "{apiVersion: example.com/v1, kind: Farm, metadata: {name: f}, spec: {}}\n---\n{apiVersion: example.com/v1, kind: Barn, metadata: {name: f}}\n"
	got := sallyportWith(t, text, "review", "-f", "-")
	if got.status != exitOK || !strings.HasPrefix(got.stderr, "note: the fields of Barn.example.com, Farm.example.com are not checked: no CustomResourceDefinition was given\n") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
	sallyportWith(t, text, "review", "-f", "-", "--with", file(t, "crd.yaml", farmDefinition)).wantError(t, "spec.size: Required value")
}
