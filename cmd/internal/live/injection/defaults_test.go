// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
	known := &Defaults{namespace: "team-a", Labels: set}
	for _, text := range texts {
		d, err := New(one(t, text))
		if err != nil {
			t.Fatal(err)
		}
		known.All = append(known.All, d)
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
	e.match(known, nil, out, false)
	var text strings.Builder
	if err := e.PrintText(&text); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/explain.txt", text.String())
	golden.Equal(t, "testdata/explainterminal.txt", onTerminal(t, e.PrintText))
}

// TestAnExplanationHasTheReasonsOfTheDecision: what is skipped or cannot work says why, without values.
func TestAnExplanationHasTheReasonsOfTheDecision(t *testing.T) {
	known := defaultsOf(t, labels.Set{},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: fights, namespace: team-a}, spec: {selector: {}, conflictPolicy: Skip, env: [{name: A, value: s3cret}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: lacks, namespace: team-a}, spec: {selector: {}, volumeMounts: [{name: disk, mountPath: /data}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: labels, namespace: team-a}, spec: {selector: {}, labels: {added: 'true'}}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: must}, spec: {selector: {matchLabels: {added: 'true'}}, env: [{name: B, value: x}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: more}, spec: {selector: {matchLabels: {added: 'true', zone: x}}, env: [{name: C, value: x}]}}")
	for _, tc := range []struct {
		annotations string
		want        []string
	}{
		{"", []string{
			"PodDefault team-a/fights: not applied, it would be skipped: env A of container main: the pod has a literal value, wanted is another (values hidden)\n",
			"PodDefault team-a/lacks: not applied, it cannot work in this pod: a volume that it mounts exists neither there nor in the pod\n",
			"ClusterPodDefault must: applied, selected by the label added, which PodDefault team-a/labels adds\n",
			"ClusterPodDefault more: label zone: it wants \"x\", the pod has no such label\n",
		}},
		{"poddefault.admission.kubeflow.org/exclude: 'true'", []string{
			"Note: the pod excludes itself by the annotation poddefault.admission.kubeflow.org/exclude.\n",
			"PodDefault team-a/fights: not applied, the pod excludes itself\n",
			"\n  ClusterPodDefault must: label added: it wants \"true\", the pod has no such label\n",
		}},
		{"kubernetes.io/config.mirror: x", []string{"Not matching:\n", "\n  PodDefault team-a/fights: no webhook of PodDefaults is called for such a pod\n"}},
	} {
		pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, annotations: {"+tc.annotations+"}}, spec: {containers: [{name: main, image: x, env: [{name: A, value: own}]}]}}")
		o := trial()
		o.Webhooks = func(source match.Source) ([]admission.Webhook, error) {
			webhook, err := poddefault.New(source, poddefault.DefaultSettings())
			excluded, other := poddefault.NewExcluded(source, poddefault.DefaultSettings())
			return []admission.Webhook{webhook, excluded}, errors.Join(err, other)
		}
		out, err := o.try(t.Context(), pod, known)
		if err != nil {
			t.Fatal(err)
		}
		e := &Explanation{Object: pod.Title(), Namespace: "team-a"}
		e.match(known, nil, out, false)
		var text strings.Builder
		if err := e.PrintText(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%q is not in:\n%s", want, text.String())
			}
		}
		if strings.Contains(text.String(), "s3cret") {
			t.Error("it gives a value away")
		}
	}
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

func TestAPreviewSaysWhyAnObjectIsNotApplied(t *testing.T) {
	known := defaultsOf(t, labels.Set{},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: gone, namespace: team-a}, spec: {selector: {}, env: [{name: A, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: picky, namespace: team-a}, spec: {selector: {matchLabels: {app: web}}, env: [{name: B, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: fights, namespace: team-a}, spec: {selector: {}, conflictPolicy: Skip, env: [{name: C, value: s3cret}]}}")
	given, after, effect := known.All, known.without(known.All[1]), &Effect{}
	for i := range 13 {
		own := ""
		if i > 0 {
			own = ", env: [{name: C, value: own}]"
		}
		pod := one(t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: team-a}, spec: {containers: [{name: main, image: x%s}]}}", i, own))
		out, err := trial().try(t.Context(), pod, after)
		if err != nil {
			t.Fatal(err)
		}
		effect.decided(pod, given, after, out)
	}
	var text strings.Builder
	for _, o := range effect.Objects {
		o.end()
		if err := o.print(&text); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"PodDefault team-a/picky would be applied to no pod of a workload:\n  Pod team-a/p0: label app: it wants \"web\", the pod has no such label\n",
		"PodDefault team-a/fights would be applied to the pods of 1 of them, and not to those of:\n  Pod team-a/p1: it would be skipped: env C of container main: ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "gone") || strings.Contains(text.String(), "s3cret") || strings.Count(text.String(), "team-a/p1:") != 2 ||
		!strings.Contains(text.String(), "  and 3 more\n") || !strings.Contains(text.String(), "  and 2 more\n") {
		t.Errorf("printed:\n%s", &text)
	}
}
