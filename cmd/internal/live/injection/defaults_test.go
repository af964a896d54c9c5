// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
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

// simulator uses the webhook with its default settings.
func simulator() *Simulator {
	return &Simulator{Webhooks: func(source match.Source) ([]admission.Webhook, error) {
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
	o := simulator()
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
		o := simulator()
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
		out, err := simulator().try(t.Context(), pod, after)
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

// TestADiffSaysWhyAnObjectIsNotApplied: of a pod that exists, also what has changed since it was created.
func TestADiffSaysWhyAnObjectIsNotApplied(t *testing.T) {
	podDefault := func(name, spec string) string {
		return "{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: " + name + ", namespace: team-a, resourceVersion: '7', creationTimestamp: '2026-01-02T00:00:00Z'}, spec: {" + spec + "}}"
	}
	narrowed := podDefault("narrowed", "selector: {matchLabels: {app: web}}, env: [{name: A, value: x}]")
	skips := podDefault("skips", "selector: {}, conflictPolicy: Skip, env: [{name: B, value: s3cret}]")
	const (
		created = "uid: u, creationTimestamp: '2026-01-01T00:00:00Z', managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:metadata': {'f:annotations': {'.': {}}}}}], annotations: {"
		wants   = "label app: it wants \"web\", the pod has no such label"
	)
	for what, tc := range map[string]struct {
		pod      string
		defaults []string
		want     string
	}{
		"a new pod that none selects": {"", []string{narrowed}, "PodDefault team-a/narrowed would not be applied: " + wants + "\n"},
		"a new pod and a conflict":    {"", []string{narrowed, skips}, "PodDefault team-a/skips would not be applied: it would be skipped: env B of container main: "},
		"a pod that carries it": {created + "poddefault.admission.kubeflow.org/poddefault-narrowed: '7'}", []string{narrowed, podDefault("audits", "selector: {}, mode: Audit")},
			"PodDefault team-a/audits would not be applied: its mode is Audit\nPodDefault team-a/narrowed was applied when the pod was created, and would not be now: " + wants + "\n"},
		"a pod that is older": {created + "}", []string{narrowed, podDefault("late", "selector: {}, env: [{name: C, value: x}]")}, "PodDefault team-a/late would be applied now: it was created after the pod\n"},
		"all are applied":     {"labels: {app: web}", []string{narrowed}, ""},
	} {
		pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, "+tc.pod+"}, spec: {containers: [{name: main, image: x, env: [{name: B, value: own}]}]}}")
		o, notes, out := simulator(), &strings.Builder{}, &strings.Builder{}
		o.Checker = fieldcheck.New(fieldcheck.Ignore, notes, &fieldcheck.Definitions{})
		result, err := o.diff(t.Context(), &workload.Pod{Object: pod}, defaultsOf(t, labels.Set{}, tc.defaults...))
		if err != nil {
			t.Fatal(err)
		}
		diff, err := review.Diff(result, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&review.Printer{Out: out, Notes: notes, Output: review.OutputDiff}).Print(result); err != nil {
			t.Fatal(err)
		}
		if remarks, found := strings.CutPrefix(out.String(), diff); !found || !strings.HasPrefix(remarks, tc.want) || tc.want == "" && remarks != "" || strings.Contains(remarks, "s3cret") || strings.Count(remarks, "\n") != max(1, strings.Count(tc.want, "\n")) && tc.want != "" {
			t.Errorf("%s: printed:\n%s", what, out)
		}
		out.Reset()
		if err := (&review.Printer{Out: out, Notes: notes, Output: review.OutputJSON}).Print(result); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(tc.want, "\n")
		if !strings.HasPrefix(out.String(), "{") || strings.Contains(out.String(), "would not") || !strings.Contains(notes.String(), first) || tc.want != "" && !strings.Contains(notes.String(), "note: Pod team-a/p: "+first) {
			t.Errorf("%s: notes of JSON:\n%s", what, notes)
		}
	}
}
