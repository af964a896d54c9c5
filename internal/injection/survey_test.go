// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault/drift"
)

func TestASurveySortsPodsByRevision(t *testing.T) {
	known := defaultsOf(t, nil, `
apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {namespace: team-a, name: proxy, resourceVersion: "7"}
spec: {selector: {matchLabels: {proxied: "true"}}, env: [{name: A, value: "1"}]}`)
	d := known.all[0]
	judge := drift.New(known.index())
	var pods []surveyedPod
	add := func(name, label, mark string) {
		annotations := map[string]string{}
		if mark != "" {
			annotations[d.mark()] = mark
		}
		found, err := judge.Pod(t.Context(), drift.Pod{Namespace: "team-a", Labels: map[string]string{"proxied": label}, Annotations: annotations})
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, surveyedPod{name, annotations, found})
	}
	now := d.compiled.Revision()
	add("old-1", "true", "5@0123456789")
	add("old-2", "true", "6@0123456789")
	add("oldest", "true", "4")
	add("new", "true", poddefault.MarkValue("6", now))
	add("without", "true", "")
	add("unlabelled", "false", poddefault.MarkValue("7", now))
	add("other", "false", "")

	got := d.survey(pods)
	want := []Carriers{{now, true, []string{"new", "unlabelled"}}, {"0123456789", false, []string{"old-1", "old-2"}}, {"4", false, []string{"oldest"}}}
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
