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
  group: GROUP
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
              priority: {default: 7, description: keep priority (+sallyport), type: integer}
              sidecars:
                description: keep sidecars
                items:
                  description: drop the type
                  properties:
                    env:
                      description: keep env
                      items: {properties: {name: {type: string, default: dropped, description: drop name}}, type: object}
                      type: array
                      x-kubernetes-list-type: set
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
                x-kubernetes-list-type: set
              hostAliases:
                items: {type: object}
                type: array
                x-kubernetes-list-type: atomic
              rollout:
                description: keep rollout
                properties:
                  steps:
                    items:
                      properties:
                        percent: {type: integer, default: 42}
                        podSelector: {properties: {matchLabels: {description: keep matchLabels}}, type: object}
                      type: object
                    type: array
          status:
            properties:
              conditions:
                description: keep conditions
                items: {properties: {type: {description: keep type, type: string}}, type: object}
                type: array
                x-kubernetes-list-map-keys: [type]
                x-kubernetes-list-type: map
`

func TestTrim(t *testing.T) {
	for group, want := range map[string]struct{ marks, sets int }{
		kubeflow:       {1, 0}, // the lists of sidecars are Kubeflow's
		"sallyport.io": {0, 2},
	} {
		t.Run(group, func(t *testing.T) {
			got, err := trim([]byte(strings.Replace(generated, "GROUP", group, 1)))
			if err != nil {
				t.Fatal(err)
			}
			for _, keep := range []string{
				"keep root", "keep spec", "keep sidecars", "keep env", "keep ports", "keep priority", "keep rollout", "keep matchLabels", "keep conditions", "keep type\n",
				"default: TCP", "default: 7", "default: 42", "x-kubernetes-list-type: atomic",
			} {
				if !strings.Contains(string(got), keep) {
					t.Errorf("%q is gone", keep)
				}
			}
			if strings.Contains(string(got), "drop") {
				t.Errorf("something that should be dropped is still there:\n%s", got)
			}
			for text, n := range map[string]int{"x-kubernetes-list-type: map": 2, "x-kubernetes-list-type: set": want.sets, mark: want.marks} {
				if got := strings.Count(string(got), text); got != n {
					t.Errorf("%q is there %d times, want %d", text, got, n)
				}
			}
			again, err := trim(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(again) != string(got) {
				t.Error("a second run changes the result")
			}
		})
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
