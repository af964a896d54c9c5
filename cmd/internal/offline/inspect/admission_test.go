// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

const hooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: pods.example.com
  clientConfig: {url: "https://127.0.0.1:9443/pods"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods, pods/eviction]}]
  failurePolicy: Fail
  timeoutSeconds: 5
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {team: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {team: a}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
`

func TestTheChainOfFilesFollowsRulesAndNamespaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hooks.yaml")
	if err := os.WriteFile(path, []byte(hooks), 0o600); err != nil {
		t.Fatal(err)
	}
	admission, known, err := AdmissionOfFiles([]string{path}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		resource string
		question Question
		out      bool
	}{
		"a namespace that is selected":     {"pods", Question{Operation: "CREATE", Namespace: "team-a"}, false},
		"a subresource":                    {"pods", Question{Operation: "CREATE", Namespace: "team-a", Subresource: "eviction"}, false},
		"a namespace that is not selected": {"pods", Question{Operation: "CREATE", Namespace: "team-b"}, true},
		"another operation":                {"pods", Question{Operation: "UPDATE", Namespace: "team-a"}, true},
		"another resource":                 {"services", Question{Operation: "CREATE", Namespace: "team-a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			resource, err := known.Find(tc.resource)
			if err != nil {
				t.Fatal(err)
			}
			chain, err := admission.Chain(t.Context(), resource, tc.question)
			if err != nil || len(chain.Chain) != 1 {
				t.Fatalf("%+v, %v", chain, err)
			}
			if got := chain.Chain[0].Answer == matcher.Out; got != tc.out {
				t.Errorf("out: %t, because %s", got, chain.Chain[0].Why)
			}
			var text strings.Builder
			if err := chain.PrintText(&text, false); err != nil || strings.Contains(text.String(), "Nobody is asked.") != tc.out {
				t.Errorf("%v\n%s", err, text.String())
			}
		})
	}
	nodes, err := known.Find("nodes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admission.Chain(t.Context(), nodes, Question{Operation: "CREATE", Namespace: "team-a"}); err == nil || !strings.Contains(err.Error(), "in no namespace") {
		t.Errorf("a node in a namespace: %v", err)
	}
}

func TestASubresourceHasObjectsOfItsOwnKind(t *testing.T) {
	set, err := resources.OfFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) *manifest.Object {
		if text == "" {
			return nil
		}
		objects, _, err := manifest.Parse("object.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return objects[0]
	}
	const (
		scale      = "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web, namespace: a}, spec: {replicas: 9}}"
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a, uid: u}, spec: {selector: {matchLabels: {a: b}}, replicas: 3}, status: {replicas: 2}}"
		eviction   = "{apiVersion: policy/v1, kind: Eviction, metadata: {name: p, namespace: a}}"
		binding    = "{apiVersion: v1, kind: Binding, metadata: {name: p, namespace: a}, target: {name: n}}"
		pod        = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}}"
	)
	for name, c := range map[string]struct{ resource, subresource, operation, object, old, want string }{
		"an eviction":                        {"pods", "eviction", "CREATE", eviction, "", "Eviction policy/v1, pods v1, old: "},
		"a binding":                          {"pods", "binding", "CREATE", binding, "", "Binding /v1, pods v1, old: "},
		"a status":                           {"pods", "status", "UPDATE", pod, "", `Pod /v1, pods v1, old: {"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"}}`},
		"a scale":                            {"deployments", "scale", "UPDATE", scale, scale, `Scale autoscaling/v1, deployments v1, old: {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"a"},"spec":{"replicas":9}}`},
		"a scale of a Deployment":            {"deployments", "scale", "UPDATE", scale, deployment, `Scale autoscaling/v1, deployments v1, old: {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"a","uid":"u"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}}`},
		"a pod is not an eviction":           {"pods", "eviction", "CREATE", pod, "", "is not the object of pods/eviction: pass one of kind Eviction, policy/v1"},
		"a Deployment is not a scale":        {"deployments", "scale", "UPDATE", deployment, "", "is not the object of deployments.apps/scale: pass one of kind Scale, autoscaling/v1"},
		"an eviction is not a pod":           {"pods", "", "CREATE", eviction, "", "is not of pods"},
		"another Deployment as the old one":  {"deployments", "scale", "UPDATE", scale, strings.ReplaceAll(deployment, "web", "other"), "must be the same object"},
		"a scale of what no API server made": {"replicationcontrollers", "scale", "UPDATE", scale, "{apiVersion: v1, kind: ReplicationController, metadata: {name: web, namespace: a}}", "give the old object as autoscaling/v1, Scale"},
	} {
		resource, err := set.Find(c.resource)
		if err != nil {
			t.Fatal(err)
		}
		req, err := Question{Operation: c.operation, Subresource: c.subresource, Object: parse(c.object), Old: parse(c.old)}.Review(resource)
		got := ""
		if err == nil {
			got = fmt.Sprintf("%s %s/%s, %s %s, old: %s", req.Kind.Kind, req.Kind.Group, req.Kind.Version, req.Resource.Resource, req.Resource.Version, req.OldObject.Raw)
		} else {
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
