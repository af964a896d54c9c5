// SPDX-License-Identifier: Apache-2.0

package matcher

import (
	"maps"
	"math/rand/v2"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/client-go/kubernetes"
)

// equivalents are the same for each resource.
type equivalents struct {
	admission.ObjectInterfaces
	list []schema.GroupVersionResource
}

func (e equivalents) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return e }
func (e equivalents) EquivalentResourcesFor(schema.GroupVersionResource, string) []schema.GroupVersionResource {
	return e.list
}
func (e equivalents) KindFor(of schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	return of.GroupVersion().WithKind("Any")
}

type draw struct{ *rand.Rand }

func (d draw) one(of ...string) string { return of[d.IntN(len(of))] }

func (d draw) some(of ...string) []string {
	out := make([]string, 1+d.IntN(2))
	for i := range out {
		out[i] = d.one(of...)
	}
	return out
}

func (d draw) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.one("", "apps"), Version: d.one("v1", "v1beta1"), Resource: d.one("pods", "namespaces", "nodes")}
}

func (d draw) rules(most int) []admissionregistrationv1.NamedRuleWithOperations {
	out := make([]admissionregistrationv1.NamedRuleWithOperations, d.IntN(most+1))
	for i := range out {
		r := &out[i]
		for _, operation := range d.some("CREATE", "UPDATE", "DELETE", "CONNECT", "*", "*") {
			r.Operations = append(r.Operations, admissionregistrationv1.OperationType(operation))
		}
		r.APIGroups, r.APIVersions = d.some("", "apps", "*"), d.some("v1", "v1beta1", "*")
		r.Resources = d.some("pods", "namespaces", "nodes", "*", "*/*", "*/status", "pods/*", "pods/status")
		if scope := admissionregistrationv1.ScopeType(d.one("", "", "*", "Cluster", "Namespaced")); scope != "" {
			r.Scope = &scope
		}
		if d.IntN(4) == 0 {
			r.ResourceNames = d.some("x", "y")
		}
	}
	return out
}

func (d draw) selector() *metav1.LabelSelector {
	switch d.IntN(4) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{MatchLabels: map[string]string{d.one("a", "b", corev1.LabelMetadataName): d.one("1", "2", "team")}}
	}
	out := &metav1.LabelSelector{}
	for range d.IntN(3) {
		r := metav1.LabelSelectorRequirement{Key: d.one("a", "b", corev1.LabelMetadataName), Operator: metav1.LabelSelectorOperator(d.one("In", "NotIn", "Exists", "DoesNotExist"))}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = d.some("1", "2", "team")
		}
		out.MatchExpressions = append(out.MatchExpressions, r)
	}
	return out
}

func (d draw) labels() map[string]string {
	out := map[string]string{}
	for range d.IntN(3) {
		out[d.one("a", "b")] = d.one("1", "2")
	}
	return out
}

func (d draw) object() map[string]any {
	labels := map[string]any{}
	for key, value := range d.labels() {
		labels[key] = value
	}
	return map[string]any{"metadata": map[string]any{"name": "x", "labels": labels}}
}

func (d draw) request() Request {
	r := Request{
		Operation: admissionregistrationv1.OperationType(d.one("CREATE", "UPDATE", "DELETE", "CONNECT")), Resource: d.resource(), Subresource: d.one("", "", "status"),
		Namespace: d.one("", "team", "team"), Name: d.one("x", "y"), NamespaceLabels: d.labels(),
	}
	r.Kind = r.Resource.GroupVersion().WithKind("Any")
	for range d.IntN(3) {
		r.Equivalents = append(r.Equivalents, d.resource())
	}
	if r.Resource.Resource == "namespaces" {
		r.Namespace = "team"
	}
	if r.Operation == admissionregistrationv1.Create || r.Operation == admissionregistrationv1.Update {
		r.Object = d.object()
	}
	if r.Operation == admissionregistrationv1.Update || r.Operation == admissionregistrationv1.Delete {
		r.OldObject = d.object()
	}
	return r
}

// asked returns what the API server's matcher says of a request.
func asKubernetes(t *testing.T, r Request, c Criteria) (bool, schema.GroupVersionResource) {
	t.Helper()
	labels := map[string]string{corev1.LabelMetadataName: r.Namespace}
	maps.Copy(labels, r.NamespaceLabels)
	of := matching.NewMatcher(labelled{labels: labels}, &kubernetes.Clientset{})
	matches, sent, _, err := of.Matches(r.attributes(), equivalents{list: r.Equivalents}, c)
	if err != nil {
		t.Fatal(err)
	}
	return matches, sent
}

// TestMatchesAsTheAPIServerDoes compares random requests and constraints with the API server's matcher: if all is known, the answer is its
// answer; if something is not known, In and Out are its answer whatever the unknown is.
func TestMatchesAsTheAPIServerDoes(t *testing.T) {
	d, counts := draw{rand.New(rand.NewPCG(1, 2))}, map[Answer]int{}
	for range 50_000 {
		policy := admissionregistrationv1.MatchPolicyType(d.one("Exact", "Equivalent", "Equivalent"))
		m := &admissionregistrationv1.MatchResources{ResourceRules: d.rules(3), MatchPolicy: &policy, NamespaceSelector: d.selector(), ObjectSelector: d.selector()}
		if d.IntN(3) == 0 {
			m.ExcludeResourceRules = d.rules(1)
		}
		r := d.request()
		steps, sent := r.Resources(m, "matchConstraints")
		answer, why := Conclude(steps)
		want, wantSent := asKubernetes(t, r, Criteria(*m))
		if answer == Maybe || (answer == In) != want || want && sent != wantSent {
			t.Fatalf("%+v\n%+v\n%s as %v: %s\nthe API server: %t as %v", r, m, answer, sent, why, want, wantSent)
		}
		if len(m.ResourceRules) > 0 && len(m.ExcludeResourceRules) == 0 {
			var rules []admissionregistrationv1.RuleWithOperations
			for i := range m.ResourceRules {
				m.ResourceRules[i].ResourceNames = nil // webhooks have none
				rules = append(rules, m.ResourceRules[i].RuleWithOperations)
			}
			steps, _ := r.Webhook(rules, m.MatchPolicy, m.NamespaceSelector, m.ObjectSelector)
			answer, _ := Conclude(steps)
			if want, _ := asKubernetes(t, r, OfWebhook(rules, m.MatchPolicy, m.NamespaceSelector, m.ObjectSelector)); (answer == In) != want {
				t.Fatalf("as a webhook: %+v\n%+v\n%s", r, m, answer)
			}
		}

		known := r
		for _, forget := range []func(){func() { r.Object = nil }, func() { r.OldObject = nil }, func() { r.NamespaceLabels = nil }} {
			if d.IntN(2) == 0 {
				forget()
			}
		}
		steps, _ = r.Resources(m, "matchConstraints")
		answer, why = Conclude(steps)
		counts[answer]++
		if answer == Maybe {
			continue
		}
		for range 8 {
			completed := r
			if known.Object != nil && r.Object == nil {
				completed.Object = d.object()
			}
			if known.OldObject != nil && r.OldObject == nil {
				completed.OldObject = d.object()
			}
			if r.NamespaceLabels == nil {
				completed.NamespaceLabels = d.labels()
			}
			if matches, _ := asKubernetes(t, completed, Criteria(*m)); (answer == In) != matches {
				t.Fatalf("%+v\n%+v\n%s: %s\nthe API server, of %+v: %t", r, m, answer, why, completed, matches)
			}
		}
	}
	for _, answer := range []Answer{In, Out, Maybe} {
		if counts[answer] < 1000 {
			t.Errorf("%v: too few were compared", counts)
		}
	}
}

// TestCoversWhatAnyRequestMatches: a rule that matches a request covers its resource, and rules that match the same request overlap.
func TestCoversWhatAnyRequestMatches(t *testing.T) {
	d, matched, both := draw{rand.New(rand.NewPCG(3, 4))}, 0, 0
	for range 50_000 {
		r, rules := d.request(), d.rules(2)
		resource := r.Resource.Resource + "/" + r.Subresource
		var matching []admissionregistrationv1.RuleWithOperations
		for _, rule := range rules {
			a := &asked{resource: r.Resource, subresource: r.Subresource, namespace: r.Namespace, operation: r.Operation}
			if !a.by(rule.RuleWithOperations) {
				continue
			}
			matched++
			matching = append(matching, rule.RuleWithOperations)
			if !Covers(rule.RuleWithOperations, r.Resource.Group, resource, r.Operation) {
				t.Fatalf("%+v does not cover %+v", rule, r)
			}
		}
		if len(matching) == 2 {
			both++
			if !Overlap(matching[0], matching[1]) {
				t.Fatalf("%+v do not overlap, for %+v", matching, r)
			}
		}
	}
	if matched < 1000 || both < 100 {
		t.Errorf("%d rules matched, and %d pairs: too few", matched, both)
	}
}
