// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const generated = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: keep root
        properties:
          kind: {description: drop kind, type: string}
          spec:
            description: keep spec
            properties:
              containers:
                description: keep containers
                items:
                  description: drop the type
                  properties:
                    env:
                      description: keep env
                      items: {properties: {name: {type: string, default: dropped, description: drop name}}, type: object}
                      type: array
                      x-kubernetes-list-map-keys: [name]
                      x-kubernetes-list-type: map
                    ports:
                      description: keep ports
                      items:
                        properties:
                          protocol: {default: TCP, description: drop protocol, type: string}
                          hostIP: {default: dropped, type: string}
                        type: object
                      type: array
                      x-kubernetes-list-map-keys: [protocol]
                      x-kubernetes-list-type: map
                  type: object
                type: array
                x-kubernetes-list-type: atomic
              rollout:
                description: keep rollout
                properties:
                  steps:
                    items: {properties: {podSelector: {properties: {matchLabels: {description: keep matchLabels}}, type: object}}, type: object}
                    type: array
          status:
            properties:
              conditions:
                description: keep conditions
                items: {properties: {type: {description: keep type (+sallyport), type: string}}, type: object}
                type: array
                x-kubernetes-list-map-keys: [type]
                x-kubernetes-list-type: map
`

func TestTrim(t *testing.T) {
	got, err := trim([]byte(generated))
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []string{"keep root", "keep spec", "keep containers", "keep env", "keep ports", "keep rollout", "keep matchLabels", "keep conditions", "keep type\n", "default: TCP"} {
		if !strings.Contains(string(got), keep) {
			t.Errorf("%q is gone", keep)
		}
	}
	if strings.Contains(string(got), "drop") {
		t.Errorf("something that should be dropped is still there:\n%s", got)
	}
	if n := strings.Count(string(got), "x-kubernetes-list-type: map"); n != 2 {
		t.Errorf("%d list maps, want 2: ports and conditions", n)
	}
	if strings.Contains(string(got), "atomic") {
		t.Error("the list type of a field of spec is still there")
	}
	again, err := trim(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(got) {
		t.Error("a second run changes the result")
	}
}

func TestTrimRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"another kind":       "kind: ConfigMap",
		"no versions":        "kind: CustomResourceDefinition",
		"a missing schema":   "{kind: CustomResourceDefinition, spec: {versions: [{name: v1}]}}",
		"not YAML":           "\t{",
		"a large definition": strings.Replace(generated, "keep root", strings.Repeat("x", maxSize), 1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := trim([]byte(in)); err == nil {
				t.Error("no error")
			}
		})
	}
}
