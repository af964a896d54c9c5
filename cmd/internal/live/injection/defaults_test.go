// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/golden"
)

// one returns the only object of a text.
func one(t *testing.T, text string) *manifest.Object {
	t.Helper()
	objects, _, err := manifest.Parse("stdin", []byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

func defaultsOf(t *testing.T, set labels.Set, texts ...string) *Defaults {
	t.Helper()
	known := &Defaults{namespace: "team-a", labels: set}
	for _, text := range texts {
		d, err := New(one(t, text))
		if err != nil {
			t.Fatal(err)
		}
		known.all = append(known.all, d)
	}
	known.sort()
	return known
}

// trial uses the webhook with its default settings.
func trial() *Trial {
	return &Trial{Webhooks: func(source match.Source) ([]admission.Webhook, error) {
		webhook, err := poddefault.New(source, poddefault.DefaultSettings())
		return []admission.Webhook{webhook}, err
	}}
}

func TestMismatchesNameTheLabel(t *testing.T) {
	for name, tc := range map[string]struct {
		expression metav1.LabelSelectorRequirement
		set        labels.Set
		want       string
	}{
		"another value":            {metav1.LabelSelectorRequirement{Key: "k", Operator: "In", Values: []string{"a"}}, labels.Set{"k": "b"}, `label k: it wants "a", the pod has "b"`},
		"none of several":          {metav1.LabelSelectorRequirement{Key: "k", Operator: "In", Values: []string{"a", "b"}}, nil, `label k: it wants one of a, b, the pod has no such label`},
		"one that must not be":     {metav1.LabelSelectorRequirement{Key: "k", Operator: "NotIn", Values: []string{"a"}}, labels.Set{"k": "a"}, `label k: it wants none of a, the pod has "a"`},
		"a label that is missing":  {metav1.LabelSelectorRequirement{Key: "k", Operator: "Exists"}, nil, `label k: it wants it to be there, the pod has no such label`},
		"a label that is too many": {metav1.LabelSelectorRequirement{Key: "k", Operator: "DoesNotExist"}, labels.Set{"k": ""}, `label k: it wants it not to be there, the pod has ""`},
		"a match":                  {metav1.LabelSelectorRequirement{Key: "k", Operator: "Exists"}, labels.Set{"k": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{tc.expression}})
			if err != nil {
				t.Fatal(err)
			}
			if got := mismatch(selector, tc.set, "the pod"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := mismatch(labels.Nothing(), nil, "the pod"); got == "" {
		t.Error("a selector that selects nothing matches")
	}
	many := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range strings.Split("abcdefgh", "") {
		many.MatchLabels[key] = "x"
	}
	selector, err := metav1.LabelSelectorAsSelector(many)
	if got := mismatch(selector, nil, "the pod"); err != nil || !strings.HasSuffix(got, "; and 5 labels more") {
		t.Errorf("got %q (%v)", got, err)
	}
	long := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "In", Values: strings.Split(strings.Repeat("value-", 20), "-")[:20]}}}
	for i := range long.MatchExpressions[0].Values {
		long.MatchExpressions[0].Values[i] += string(rune('a' + i))
	}
	selector, err = metav1.LabelSelectorAsSelector(long)
	if got := mismatch(selector, nil, "the pod"); err != nil || len(got) > 200 {
		t.Errorf("got %q (%v)", got, err)
	}
}

func TestAnExplanationSortsOutWhoIsForThePod(t *testing.T) {
	known := defaultsOf(t, labels.Set{"tier": "web"},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: second, namespace: team-a}, spec: {selector: {matchLabels: {added: 'true'}}, env: [{name: B, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: first, namespace: team-a}, spec: {selector: {matchLabels: {use: 'true'}}, labels: {added: 'true'}}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: bad, namespace: team-a}, spec: {selector: {}, env: [{name: A}, {name: A, value: b}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: looks, namespace: team-a}, spec: {selector: {}, mode: Audit, env: [{name: C, value: x}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: all}, spec: {selector: {}, namespaceSelector: {matchLabels: {tier: web}}, env: [{name: D, value: x}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: others}, spec: {selector: {}, namespaceSelector: {matchLabels: {tier: data}}, env: [{name: E, value: x}]}}")
	o := trial()
	pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, labels: {use: 'true'}}, spec: {containers: [{name: main, image: x}]}}")
	out, err := o.try(t.Context(), pod, known)
	if err != nil {
		t.Fatal(err)
	}
	e := &Explanation{Object: pod.Title(), Namespace: "team-a", Warnings: out.Warnings}
	e.match(known, pod, nil, out)
	var text strings.Builder
	if err := e.PrintText(&text); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/explain.txt", text.String())
}

func TestAPreviewThatCouldNotSeeAllIsNoSuccess(t *testing.T) {
	for name, tc := range map[string]struct {
		effect Effect
		want   string
		denied bool
	}{
		"all was seen":                           {Effect{Looked: 2, Changed: 1}, "", false},
		"some may not be listed":                 {Effect{Looked: 2, Unseen: []string{"jobs of team-a"}}, "incomplete: you may not list jobs of team-a; run it again with a kubeconfig that has the permission", false},
		"some would be denied, others not known": {Effect{Looked: 2, Denied: 1, Unseen: []string{"jobs of team-a"}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			denied, err := PreviewPrinter{Out: &out}.End(&tc.effect)
			if got := fmt.Sprint(err); got != tc.want && (err != nil || tc.want != "") || denied != tc.denied || !strings.Contains(out.String(), "of 2 workloads would change") {
				t.Errorf("%v, printed %s", err, out.String())
			}
		})
	}
}
