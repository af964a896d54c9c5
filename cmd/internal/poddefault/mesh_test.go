// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

func TestContainersOfAMesh(t *testing.T) {
	const env = "env: [{name: A, value: x}]"
	for _, tc := range []struct {
		what       string
		containers []string
		specs      []string
		want       []string // containers that get the variable
		marked     bool     // by the first object
		warning    string
	}{
		{what: "a proxy beside the application", containers: []string{"main", "istio-proxy"}, specs: []string{env}, want: []string{"main"}, marked: true},
		{what: "a gateway, whose only container is the proxy", containers: []string{"istio-proxy"}, specs: []string{env}, want: []string{"istio-proxy"}, marked: true},
		{what: "another mesh's", containers: []string{"linkerd-proxy"}, specs: []string{env}, want: []string{"linkerd-proxy"}, marked: true},
		{what: "a gateway with a container that another object brings", containers: []string{"istio-proxy"}, specs: []string{env, "sidecars: [{name: logs, image: l}]"}, want: []string{"istio-proxy"}, marked: true},
		{what: "two proxies", containers: []string{"istio-proxy", "linkerd-proxy"}, specs: []string{env}, warning: "container istio-proxy gets nothing from it"},
		{what: "two proxies, and an object that adds a volume", containers: []string{"istio-proxy", "linkerd-proxy"}, specs: []string{env + ", volumes: [{name: v, emptyDir: {}}]"}, marked: true, warning: "container istio-proxy gets nothing"},
		{what: "a proxy by its name", containers: []string{"main", "istio-proxy"}, specs: []string{env + ", containerSelector: {names: [istio-proxy]}"}, want: []string{"istio-proxy"}, marked: true},
		{what: "first, with the name of a proxy", containers: []string{"istio-proxy", "main", "helper"}, specs: []string{env + ", containerSelector: {first: true, names: [istio-proxy, helper]}"}, want: []string{"helper"}, marked: true},
		{what: "first, with the name of nothing but a proxy", containers: []string{"istio-proxy", "main"}, specs: []string{env + ", containerSelector: {first: true, names: [istio-proxy]}"}, warning: "container istio-proxy gets nothing from it"},
		{what: "first, in a gateway", containers: []string{"istio-proxy"}, specs: []string{env + ", containerSelector: {first: true}"}, want: []string{"istio-proxy"}, marked: true},
	} {
		t.Run(tc.what, func(t *testing.T) {
			var containers []string
			for _, name := range tc.containers {
				containers = append(containers, fmt.Sprintf(`{"name":%q,"image":"i"}`, name))
			}
			raw := []byte(`{"metadata":{"name":"p"},"spec":{"containers":[` + strings.Join(containers, ",") + `]}}`)
			index := objectsOf(t, tc.specs...)
			warnings := strings.Join(handleFrom(t, raw, index).Warnings, "\n")
			if (warnings != "") != (tc.warning != "") || !strings.Contains(warnings, tc.warning) {
				t.Errorf("warnings: %s", warnings)
			}
			after := string(admitted(t, raw, index))
			for _, name := range tc.containers {
				got := strings.Contains(after, fmt.Sprintf(`"name":%q,"image":"i","env":[{"name":"A"`, name)) || strings.Contains(after, fmt.Sprintf(`{"env":[{"name":"A","value":"x"}],"image":"i","name":%q`, name))
				if want := slices.Contains(tc.want, name); got != want {
					t.Errorf("%s: %v, want %v: %s", name, got, want, after)
				}
			}
			if got := strings.Contains(after, meta.Mark("a")); got != tc.marked {
				t.Errorf("marked: %v: %s", got, after)
			}
			if got := strings.Contains(after, `a@`); got != tc.marked {
				t.Errorf("recorded: %v: %s", got, after)
			}
			if !strings.Contains(after, meta.DecisionsAnnotation) {
				t.Errorf("the decision is not recorded, which the backstop asks for: %s", after)
			}
		})
	}
}

func TestAnObjectThatReachesOnlyAnInitContainerOfAMeshIsNotApplied(t *testing.T) {
	raw := []byte(`{"metadata":{"name":"p"},"spec":{"initContainers":[{"name":"linkerd-proxy","restartPolicy":"Always"}],"containers":[{"name":"main"},{"name":"helper"}]}}`)
	index := objectsOf(t, "env: [{name: A, value: x}], containerSelector: {types: [InitContainer]}")
	if warnings := strings.Join(handleFrom(t, raw, index).Warnings, "\n"); !strings.Contains(warnings, "container linkerd-proxy gets nothing from it") {
		t.Errorf("warnings: %s", warnings)
	}
	if after := string(admitted(t, raw, index)); strings.Contains(after, meta.Mark("a")) {
		t.Error(after)
	}
}
