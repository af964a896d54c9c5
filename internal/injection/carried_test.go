// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/test/golden"
)

// TestAnExplanationTellsWhatAPodCarries checks that all decisions at the pod's creation
// are shown, also for objects that are gone, have changed, or do not match any more.
func TestAnExplanationTellsWhatAPodCarries(t *testing.T) {
	const long = "a-poddefault-with-a-name-that-is-longer-than-a-mark-can-be"
	known := defaultsOf(t, labels.Set{},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: same, namespace: team-a, resourceVersion: '5'}, spec: {selector: {matchLabels: {use: 'true'}}, env: [{name: A, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: changed, namespace: team-a, resourceVersion: '7'}, spec: {selector: {matchLabels: {use: 'true'}}, env: [{name: B, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: narrowed, namespace: team-a, resourceVersion: '9'}, spec: {selector: {matchLabels: {use: 'never'}}, env: [{name: C, value: x}]}}",
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: other, namespace: team-a}, spec: {selector: {matchLabels: {use: 'never'}}, env: [{name: D, value: x}]}}",
		"{apiVersion: sallyport.io/v1alpha1, kind: ClusterPodDefault, metadata: {name: moved, resourceVersion: '2'}, spec: {selector: {}, namespaceSelector: {matchLabels: {tier: web}}, env: [{name: E, value: x}]}}")
	marks := []string{
		"poddefault.admission.kubeflow.org/poddefault-same: '5'", "poddefault.admission.kubeflow.org/poddefault-changed: '6'",
		"poddefault.admission.kubeflow.org/poddefault-narrowed: '9'", "poddefault.admission.kubeflow.org/poddefault-gone: '3'",
		"poddefault.admission.kubeflow.org/poddefault-of-kubeflow: '4'", "poddefault.admission.kubeflow.org/skipped-fought: 'generation 1: s3cret'",
		"sallyport.io/clusterpoddefault-moved: '2'", "sallyport.io/clusterpoddefault-left: '8'",
		"sallyport.io/poddefaults: 'audited,changed,cluster/left,cluster/moved,fought,gone,narrowed,same," + long + "'",
	}
	pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, uid: u, labels: {use: 'true'}, annotations: {"+strings.Join(marks, ", ")+"}}, spec: {containers: [{name: main, image: x}]}}")
	o := trial()
	bare, err := skeleton(pod, known)
	if err != nil {
		t.Fatal(err)
	}
	out, err := o.try(t.Context(), bare, known)
	if err != nil {
		t.Fatal(err)
	}
	e := &Explanation{Object: pod.Title(), Namespace: "team-a", Warnings: out.Warnings}
	e.match(known, bare, pod, out)
	var text strings.Builder
	if err := e.PrintText(&text); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/explaincarried.txt", text.String())
	if strings.Contains(text.String(), "s3cret") {
		t.Error("it gives a value away")
	}

	known.clusterHidden, known.all = true, nil
	hidden := &Explanation{Namespace: "team-a"}
	hidden.match(known, bare, pod, out)
	text.Reset()
	if err := hidden.PrintText(&text); err != nil || !strings.Contains(text.String(), "ClusterPodDefault left: applied, as it was at resourceVersion 8; there is no such object now, or you may not read it\n") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}
