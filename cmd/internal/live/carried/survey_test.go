// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

func TestASurveySortsPodsByRevision(t *testing.T) {
	objects, _, err := manifest.Parse("stdin", []byte(`
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {namespace: team-a, name: proxy, resourceVersion: "7"}
spec: {selector: {matchLabels: {proxied: "true"}}, env: [{name: A, value: "1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := injection.New(objects[0])
	if err != nil {
		t.Fatal(err)
	}
	index := source.NewIndex()
	index.Set(d.Plan)
	judge := drift.New(index)
	var pods []surveyedPod
	add := func(name, label, mark, revision string) {
		annotations := map[string]string{}
		if mark != "" {
			annotations[d.Plan.Mark()] = mark
			annotations[meta.RevisionsAnnotation] = d.Plan.Decision() + "@" + revision
		}
		found, err := judge.Pod(t.Context(), drift.Pod{Namespace: "team-a", Labels: map[string]string{"proxied": label}, Annotations: annotations})
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, surveyedPod{name, annotations, found})
	}
	now, former := d.Plan.Revision(), strings.Repeat("0", plan.RevisionSize)
	add("old-1", "true", "5", former)
	add("old-2", "true", "6", former)
	add("oldest", "true", "4", "")
	add("new", "true", "6", now)
	add("without", "true", "", "")
	add("unlabelled", "false", "7", now)
	add("other", "false", "", "")

	got := surveyOf(d, pods)
	want := []Carriers{{now, true, []string{"new", "unlabelled"}}, {former, false, []string{"old-1", "old-2"}}, {"4", false, []string{"oldest"}}}
	if diff := cmp.Diff(want, got.Carriers); diff != "" {
		t.Errorf("carriers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"without"}, {"unlabelled"}}, [][]string{got.Without, got.Deselected}); diff != "" {
		t.Errorf("without, and deselected (-want +got):\n%s", diff)
	}
	if got.Version != now {
		t.Errorf("version %q", got.Version)
	}
}
