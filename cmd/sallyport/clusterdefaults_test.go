// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// one is the only object of a text.
func one(t *testing.T, text string) *object {
	t.Helper()
	objects, _, err := parseObjects("stdin", []byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

func defaultsOf(t *testing.T, set labels.Set, texts ...string) *clusterDefaults {
	t.Helper()
	known := &clusterDefaults{namespace: "team-a", labels: set}
	for _, text := range texts {
		d, err := readDefault(one(t, text))
		if err != nil {
			t.Fatal(err)
		}
		known.all = append(known.all, d)
	}
	known.sort()
	return known
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

func TestPlacesAreNamedAsPeopleDo(t *testing.T) {
	document := []byte(`{"metadata":{"labels":{"a.b/c":"1"}},"spec":{"containers":[{"name":"web","env":[{"name":"A"}],"volumeMounts":[{"mountPath":"/m","name":"v"}],` +
		`"ports":[{"containerPort":80}],"args":["x"]}],"tolerations":[{"operator":"Exists"}]}}`)
	for pointer, want := range map[string]string{
		"/spec/containers/0/env/0":              "spec.containers[web].env[A]",
		"/spec/containers/0/volumeMounts/0":     "spec.containers[web].volumeMounts[/m]",
		"/spec/containers/0/ports/0":            "spec.containers[web].ports[80]",
		"/spec/containers/0/args/0":             "spec.containers[web].args[0]",
		"/spec/tolerations/0":                   "spec.tolerations[0]",
		"/metadata/labels/a.b~1c":               "metadata.labels[a.b/c]",
		"/spec/serviceAccountName":              "spec.serviceAccountName",
		"/spec/containers/7/env/0":              "spec.containers.7.env.0", // it is gone
		"no pointer":                            "no pointer",
		"/spec/containers/0/env/0/value":        "spec.containers[web].env[A].value",
		"/spec/containers/0/volumeMounts/0/x~0": "spec.containers[web].volumeMounts[/m].x~",
	} {
		if got := place(document, pointer); got != want {
			t.Errorf("%s: got %s, want %s", pointer, got, want)
		}
	}
}

func TestNamesOfObjects(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"pod/web"}, []string{"pod", "web"}}, {[]string{"pod", "web"}, []string{"pod", "web"}},
		{[]string{"pod"}, nil}, {[]string{"pod/"}, nil}, {[]string{"/web"}, nil}, {[]string{"pod/a/b"}, nil}, {[]string{"pod/a", "b"}, nil}, {[]string{""}, nil},
	} {
		word, name, err := parseNamed(tc.args)
		if got := []string{word, name}; (err == nil) != (tc.want != nil) || err == nil && !cmp.Equal(got, tc.want) {
			t.Errorf("%q: %q, %v", tc.args, got, err)
		}
	}
}

func FuzzParseNamed(f *testing.F) {
	f.Add("pod/web", "")
	f.Add("pod", "web")
	f.Fuzz(func(t *testing.T, a, b string) {
		args := []string{a}
		if b != "" {
			args = append(args, b)
		}
		word, name, err := parseNamed(args)
		if err == nil && (word == "" || name == "" || strings.Contains(word+name, "/") && !strings.Contains(a, "/")) {
			t.Errorf("%q gives %q and %q", args, word, name)
		}
	})
}

func TestAnExplanationSortsOutWhoIsForThePod(t *testing.T) {
	known := defaultsOf(t, labels.Set{"tier": "web"},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: second, namespace: team-a}, spec: {selector: {matchLabels: {added: 'true'}}, env: [{name: B, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: first, namespace: team-a}, spec: {selector: {matchLabels: {use: 'true'}}, labels: {added: 'true'}}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: bad, namespace: team-a}, spec: {selector: {}, env: [{name: A}, {name: A, value: b}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: looks, namespace: team-a}, spec: {selector: {}, mode: Audit, env: [{name: C, value: x}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: all}, spec: {selector: {}, namespaceSelector: {matchLabels: {tier: web}}, env: [{name: D, value: x}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: others}, spec: {selector: {}, namespaceSelector: {matchLabels: {tier: data}}, env: [{name: E, value: x}]}}")
	o := defaultsOptions{settings: defaultBuiltinSettings()}
	pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, labels: {use: 'true'}}, spec: {containers: [{name: main, image: x}]}}")
	out, err := o.try(t.Context(), pod, known)
	if err != nil {
		t.Fatal(err)
	}
	e := &explanation{Object: pod.title(), Namespace: "team-a", Warnings: out.warnings}
	e.match(known, pod, nil, out)
	var text strings.Builder
	if err := e.printText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.txt", text.String())
}

func TestAPreviewThatCouldNotSeeAllIsNoSuccess(t *testing.T) {
	for name, tc := range map[string]struct {
		printer previewPrinter
		want    string
	}{
		"all was seen":                           {previewPrinter{looked: 2, changed: 1}, ""},
		"some may not be listed":                 {previewPrinter{looked: 2, unseen: []string{"jobs of team-a"}}, "not all was looked at: you may not list jobs of team-a; ask somebody who may"},
		"some would be denied, others not known": {previewPrinter{looked: 2, denied: 1, unseen: []string{"jobs of team-a"}}, "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			tc.printer.out = &out
			err := tc.printer.summary()
			if got := fmt.Sprint(err); got != tc.want && (err != nil || tc.want != "") || !strings.Contains(out.String(), "of 2 workloads would change") {
				t.Errorf("%v, printed %s", err, out.String())
			}
		})
	}
}

func TestThePluginKnowsItsNames(t *testing.T) {
	for program, want := range map[string][]string{
		"/usr/bin/sallyport":                 {"", "explain"},
		"/usr/bin/kubectl-sallyport":         {"kubectl sallyport", "explain"},
		"kubectl-sallyport.exe":              {"kubectl sallyport", "explain"},
		"/x/kubectl_complete-sallyport":      {"kubectl sallyport", "__complete", "explain"},
		"/x/kubectl_complete-sallyport-else": {"", "explain"},
	} {
		title, args := asPlugin(program, []string{"explain"})
		if got := append([]string{title}, args...); !cmp.Equal(got, want) {
			t.Errorf("%s: %q", program, got)
		}
	}
	var stdout, stderr strings.Builder
	if status := runAs(t.Context(), "kubectl sallyport", []string{"explain", "--help"}, strings.NewReader(""), &stdout, &stderr); status != exitOK ||
		!strings.Contains(stdout.String(), "  kubectl sallyport explain TYPE/NAME") || !strings.Contains(stdout.String(), "  kubectl sallyport explain pod/web-0") ||
		strings.Contains(stdout.String(), "kubectl kubectl") {
		t.Errorf("status %d\n%s%s", status, stdout.String(), stderr.String())
	}
}
