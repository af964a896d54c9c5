// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

const chainText = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: b}
webhooks:
- {name: b.b.b, clientConfig: {service: {namespace: hooks, name: webhooks}}, rules: [&pods {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}], reinvocationPolicy: IfNeeded}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks:
- {name: z.a.a, rules: [&pods {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}], objectSelector: {matchLabels: {app: x}}, failurePolicy: Ignore, timeoutSeconds: 3}
- {name: y.a.a, rules: [*pods], namespaceSelector: {matchLabels: {tier: x}}}
- {name: x.a.a, rules: [*pods], namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [team]}]}}
- {name: w.a.a, rules: [*pods], matchConditions: [{name: c, expression: "object.metadata.name == 'x'"}]}
- {name: v.a.a, rules: [*pods], matchConditions: [{name: c, expression: "object.spec.nothing == 1"}]}
- {name: u.a.a, rules: [*pods], failurePolicy: Ignore, matchConditions: [{name: c, expression: "object.spec.nothing == 1"}]}
- {name: t.a.a, rules: [*pods], matchConditions: [{name: c, expression: "object.spec.nothing == 1"}, {name: d, expression: "false"}]}
- {name: s.a.a, rules: [*pods], matchConditions: [{name: c, expression: "authorizer.group('').resource('pods').check('get').allowed()"}]}
- {name: r.a.a, rules: [*pods], matchConditions: [{name: c, expression: "request.userInfo.username == 'me'"}]}
- {name: q.a.a, rules: [{apiGroups: [""], apiVersions: [v2], operations: [CREATE], resources: [pods]}]}
- {name: p.a.a, rules: [{apiGroups: [""], apiVersions: [v2], operations: [CREATE], resources: [pods]}], matchPolicy: Exact}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: z.static.k8s.io}
webhooks:
- {name: static.z.z, rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}], clientConfig: {url: "https://127.0.0.1/x"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}], excludeResourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], resourceNames: [left-out]}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: p, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: elsewhere}
spec: {policyName: p, validationActions: [Audit], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: unbound}
spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]}}
`

func chainOf(t *testing.T, change func(*matcher.Request)) []string {
	t.Helper()
	in, err := ReadFiles(objects(t, "chain.yaml", []byte(chainText)))
	if err != nil {
		t.Fatal(err)
	}
	r := matcher.Bare("", "v1", "pods", "Pod", "team")
	r.User = ""
	r.Equivalents = []schema.GroupVersionResource{{Version: "v2", Resource: "pods"}}
	change(&r)
	var out []string
	for _, link := range in.Chain(t.Context(), r) {
		line := fmt.Sprintf("%s %s: %s", link.Answer, link.Name, link.Why)
		if link.Sent != "" {
			line += ", as " + link.Sent
		}
		out = append(out, line)
	}
	return out
}

func TestChainIsInTheOrderOfTheAPIServer(t *testing.T) {
	got := chainOf(t, func(*matcher.Request) {})
	want := []string{
		"out unbound: no binding says where the policy applies",
		"in z.static.k8s.io/static.z.z: rule */* *",
		"out a/z.a.a: objectSelector leaves the object out",
		"maybe a/y.a.a: rule \"\"/v1 pods; namespaceSelector depends on the labels of namespace team, which are not known",
		"out a/x.a.a: namespaceSelector leaves out namespace team",
		"in a/w.a.a: rule \"\"/v1 pods; condition c is true",
		"refused a/v.a.a: condition c cannot be evaluated: ",
		"out a/u.a.a: condition c cannot be evaluated, and failures are ignored: ",
		"out a/t.a.a: condition d is false",
		"maybe a/s.a.a: rule \"\"/v1 pods; condition c: it depends on rights that are not looked at here",
		"maybe a/r.a.a: rule \"\"/v1 pods; condition c depends on who asks, which is not known",
		"in a/q.a.a: rule \"\"/v2 pods, as v2",
		"out a/p.a.a: no rule is for it",
		"in b/b.b.b: rule \"\"/v1 pods",
		"out p/elsewhere: namespaceSelector leaves out namespace team",
		"in p/everywhere: rule \"\"/v1 pods",
	}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d links, want %d", len(got), len(want))
	}
}

// TestEarlierRulesGoFirstForEquivalentVersions checks what the API server does if there
// are rules for two versions and the request uses a third.
func TestEarlierRulesGoFirstForEquivalentVersions(t *testing.T) {
	const text = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks:
- name: a.a.a
  rules:
  - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}
  - {apiGroups: [example.com], apiVersions: [v1alpha1], operations: [CREATE], resources: [widgets]}
`
	in, err := ReadFiles(objects(t, "chain.yaml", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	r := matcher.Bare("example.com", "v1beta1", "widgets", "Widget", "team")
	r.Equivalents = []schema.GroupVersionResource{
		{Group: "example.com", Version: "v1alpha1", Resource: "widgets"}, {Group: "example.com", Version: "v1", Resource: "widgets"},
	}
	if chain := in.Chain(t.Context(), r); len(chain) != 1 || chain[0].Answer != matcher.In || chain[0].Sent != "example.com/v1" {
		t.Errorf("got %+v", chain)
	}
}

func TestChainOfOtherRequests(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*matcher.Request)
		want   string
	}{
		{"labels of the object let it in", func(r *matcher.Request) {
			r.Object["metadata"].(map[string]any)["labels"] = map[string]any{"app": "x"}
		}, "in a/z.a.a: rule \"\"/v1 pods; objectSelector matches"},
		{"labels of the old object let it in", func(r *matcher.Request) {
			r.OldObject = map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}}
		}, "in a/z.a.a: rule \"\"/v1 pods; objectSelector matches"},
		{"labels of the namespace are known", func(r *matcher.Request) { r.NamespaceLabels = map[string]string{"tier": "x"} }, "in a/y.a.a: rule \"\"/v1 pods; namespaceSelector matches namespace team"},
		{"nothing is known of the object", func(r *matcher.Request) { r.Object = nil }, "maybe a/w.a.a: rule \"\"/v1 pods; condition c depends on the object, which is not known"},
		{"who asks is known", func(r *matcher.Request) { r.User = "you" }, "out a/r.a.a: condition c is false"},
		{"another operation", func(r *matcher.Request) { r.Operation = admissionregistrationv1.Delete }, "out b/b.b.b: no rule is for it"},
		{"a sub-resource", func(r *matcher.Request) { r.Subresource = "status" }, "out b/b.b.b: no rule is for it"},
		{"a name that a policy leaves out", func(r *matcher.Request) { r.Name = "left-out" }, "out p/everywhere: matchConstraints leave out rule"},
		{"a webhook configuration, and a static manifest", func(r *matcher.Request) {
			*r = matcher.Bare(registrationGroup, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "")
		}, "in z.static.k8s.io/static.z.z: rule */* *"},
		{"a webhook configuration", func(r *matcher.Request) {
			*r = matcher.Bare(registrationGroup, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "")
		}, "out b/b.b.b: webhook configurations and policies are never sent"},
		{"a webhook configuration, and a policy", func(r *matcher.Request) {
			*r = matcher.Bare(registrationGroup, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "")
		}, "out p/everywhere: no rule of matchConstraints is for it"},
		{"a policy, and another policy", func(r *matcher.Request) {
			*r = matcher.Bare(registrationGroup, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "")
		}, "out p/everywhere: policies and their bindings are never seen"},
		{"a review of a token, where the cluster is older", func(r *matcher.Request) {
			*r = matcher.Bare("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "")
			r.KubernetesMinor = 36
		}, "in z.static.k8s.io/static.z.z: rule */* *"},
		{"a review of a token", func(r *matcher.Request) {
			*r = matcher.Bare("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", "")
		}, "out z.static.k8s.io/static.z.z: since Kubernetes 1.37"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := chainOf(t, tc.change)
			want := strings.Replace(tc.want, "leave out rule", "leave out", 1)
			for _, line := range got {
				if strings.HasPrefix(line, want) {
					return
				}
			}
			t.Errorf("nothing of %q in\n%s", want, strings.Join(got, "\n"))
		})
	}
}
