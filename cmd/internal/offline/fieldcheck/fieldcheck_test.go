// SPDX-License-Identifier: Apache-2.0

package fieldcheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

func TestPathsOfFieldsAreTakenApart(t *testing.T) {
	for path, want := range map[string][]string{
		"<nil>": nil, "": nil, "a": {"a"}, "a.b[0].c": {"a", "b", "0", "c"}, "a[x.y/z].b": {"a", "x.y/z", "b"}, "[0]": {"0"}, "<nil>.a": {"a"}, "a..b": {"a", "b"}, "a[": {"a", ""},
	} {
		if diff := cmp.Diff(want, pathTokens(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestTheClosestNameIsOffered(t *testing.T) {
	names := []string{"env", "envFrom", "volumeMounts", "volumes", "args"}
	for word, want := range map[string]string{"evn": "env", "Env": "env", "envform": "envFrom", "volumeMount": "volumeMounts", "somethingElse": "", "": "", "ags": "args"} {
		if got := closest(word, names); got != want {
			t.Errorf("%s: offered %q, want %q", word, got, want)
		}
	}
}

func FuzzFieldCheck(f *testing.F) {
	for _, seed := range []string{
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, env: [{name: A, value: b}]}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: b}}, spec: {containers: [{name: main, image: x}]}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: farms.example.com}, spec: {group: example.com, names: {kind: Farm, plural: farms}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: a, labels: {'': b}}, spec: {selector: {matchExpressions: [{}]}, x: 1, volumes: [{name: a, secret: {items: [null]}}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {generateName: a}, spec: {selector: null, namespaceSelector: []}}",
		"{apiVersion: kubeflow.org/, kind: PodDefault}",
		"{apiVersion: v1, kind: Pod, spec: {containers: [{resources: {limits: {cpu: x}}, a.b: {c: d}}]}}",
	} {
		f.Add(seed)
	}
	checker := New(Strict, &strings.Builder{}, &Definitions{})
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := manifest.Parse("in.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, o := range objects {
			unknown, invalid := checker.problems(t.Context(), o)
			for _, err := range append(unknown, invalid...) {
				if manifest.LineOf(err) < 1 || manifest.LineOf(err) > strings.Count(text, "\n")+1 {
					t.Errorf("%v is about no line of\n%s", err, text)
				}
			}
		}
	})
}

func TestPodsThatNobodyMakesAreNotCheckedTwice(t *testing.T) {
	objects, _, err := manifest.Parse("pod.yaml", []byte("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {newer: {}, containers: []}}"))
	if err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	checker := New(Strict, &notes, &Definitions{})
	if err := checker.CheckPod(t.Context(), &workload.Pod{Object: objects[0]}); err != nil || notes.Len() > 0 {
		t.Errorf("%v, %s", err, notes.String())
	}
}
