// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
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
	o := simulator()
	bare, err := skeleton(pod, known)
	if err != nil {
		t.Fatal(err)
	}

	out, err := o.try(t.Context(), bare, known)
	if err != nil {
		t.Fatal(err)
	}
	e := &Explanation{Object: pod.Title(), Namespace: "team-a", Warnings: out.Warnings}
	e.match(known, pod, out, false)
	var text strings.Builder
	if err := e.PrintText(&text); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/explaincarried.txt", text.String())
	if strings.Contains(text.String(), "s3cret") {
		t.Error("it gives a value away")
	}

	known.clusterHidden, known.All = true, nil
	hidden := &Explanation{Namespace: "team-a"}
	hidden.match(known, pod, out, false)
	text.Reset()
	if err := hidden.PrintText(&text); err != nil || !strings.Contains(text.String(), "ClusterPodDefault left: applied, as it was at resourceVersion 8; there is no such object now, or you may not read it\n") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

// stagedDefault is a PodDefault whose spec is rolled out over a stable one, which is recorded
// unless it is empty.
func stagedDefault(t *testing.T, rollout, stable string, step int32) *Defaults {
	t.Helper()
	known := defaultsOf(t, nil, "{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: staged, namespace: team-a, uid: s, generation: 2, resourceVersion: '7'}, "+
		"spec: {selector: {matchLabels: {use: 'true'}}, env: [{name: A, value: '2'}], rollout: "+rollout+"}}")
	set := &revision.Set{}
	if stable != "" {
		recorded := revision.New(&metav1.OwnerReference{APIVersion: "kubeflow.org/v1alpha1", Kind: "PodDefault", Name: "staged", UID: "s", Controller: new(true)}, "team-a", []byte(stable), 1)
		recorded.Labels[revision.StableLabel] = "true"
		recorded.Rollout = &sallyportv1alpha1.RevisionRollout{Revision: known.All[0].Plan.Revision(), Step: step}
		set.Add(revision.Prove(recorded))
	}
	known.rollOut(set, io.Discard)
	return known
}

// TestAnExplanationTellsTheStepOfARollout checks what is said of pods that have the stable
// revision, or get it.
func TestAnExplanationTellsTheStepOfARollout(t *testing.T) {
	const (
		stable     = `{"env":[{"name":"A","value":"1"}],"selector":{"matchLabels":{"use":"true"}}}`
		wantsOther = `{"env":[{"name":"A","value":"1"}],"selector":{"matchLabels":{"other":"true"}}}`
		use, other = "labels: {use: 'true'}", "labels: {other: 'true'}"
	)
	current := plan.RevisionOf([]byte(strings.Replace(stable, `"1"`, `"2"`, 1)))
	mark := "resourceVersion 6, revision " + revision.Short(plan.RevisionOf([]byte(stable)))
	running := use + ", uid: u, generateName: web-, annotations: {" + meta.Mark("staged") + ": '6', " + meta.RevisionsAnnotation + ": 'staged@" + plan.RevisionOf([]byte(stable)) + "'}, " +
		"ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: w, controller: true}]"
	was := "applied, as it was at " + mark + ", which is stable while revision " + revision.Short(current) + " is rolled out "
	for what, c := range map[string]struct {
		rollout, stable, pod string
		step                 int32
		want                 string
	}{
		"outside of the step":               {"{steps: [{percent: 0}, {percent: 100}]}", stable, running, 1, was + "(step 1 of 2, which does not include this pod)\n"},
		"included since":                    {"{steps: [{percent: 0}, {percent: 100}]}", stable, running, 2, was + "(step 2 of 2, which includes the pod that replaces it)\n"},
		"drawn by a name that is not known": {"{by: Pod, steps: [{percent: 0}]}", stable, running, 1, was + "(step 1 of 1)\n"},
		"aborted":                           {"{abortedRevision: '" + current + "', steps: [{percent: 100}]}", stable, running, 1, was + "(aborted)\n"},
		"not begun":                         {"{steps: [{percent: 100}]}", stable, running, 0, was + "(not begun)\n"},
		"a new pod that only the current revision selects": {"{steps: [{percent: 0}]}", wantsOther, use, 1,
			"not applied, the stable revision applies to the pod (step 1 of 1), and does not select it\n"},
		"a new pod that only the stable revision selects": {"{steps: [{percent: 0}]}", wantsOther, other, 1,
			"applied, revision " + revision.Short(plan.RevisionOf([]byte(wantsOther))) + ", which is stable while revision " + revision.Short(current) + " is rolled out (step 1 of 1)\n    + spec.containers[main].env[A]\n"},
		"a new pod in the step": {"{steps: [{percent: 100}]}", stable, use, 1,
			"applied, revision " + revision.Short(current) + ", which is rolled out (step 1 of 1)\n    + spec.containers[main].env[A]\n"},
	} {
		known := stagedDefault(t, c.rollout, c.stable, c.step)
		pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: team-a, "+c.pod+"}, spec: {containers: [{name: main, image: x}]}}")
		sent, stored := pod, pod
		if pod.UID == "" {
			stored = nil
		} else {
			var err error
			if sent, err = skeleton(pod, known); err != nil {
				t.Fatal(err)
			}
		}

		out, err := simulator().try(t.Context(), sent, known)
		if err != nil {
			t.Fatal(err)
		}
		e := &Explanation{Namespace: "team-a"}
		e.match(known, stored, out, false)
		var text strings.Builder
		if err := e.PrintText(&text); err != nil || !strings.Contains(text.String(), "  PodDefault team-a/staged: "+c.want) {
			t.Errorf("%s: %v:\n%s", what, err, text.String())
		}
	}
}

// TestAPodIsShownWithoutWhatItsRevisionAdded: the stable one, although the current revision adds something else.
func TestAPodIsShownWithoutWhatItsRevisionAdded(t *testing.T) {
	stable := `{"labels":{"mesh":"x"},"selector":{"matchLabels":{"use":"true"}},"sidecars":[{"image":"i","name":"proxy"}]}`
	pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, uid: u, labels: {use: 'true', mesh: x}, annotations: {"+
		meta.Mark("staged")+": '6', "+meta.RevisionsAnnotation+": 'staged@"+plan.RevisionOf([]byte(stable))+"'}}, spec: {containers: [{name: main, image: x}, {name: proxy, image: i}]}}")
	bare, err := skeleton(pod, stagedDefault(t, "{steps: [{percent: 0}]}", stable, 1))
	if err != nil {
		t.Fatal(err)
	}
	if raw := string(bare.Raw); strings.Contains(raw, "mesh") || strings.Contains(raw, "proxy") || !strings.Contains(raw, "main") {
		t.Errorf("the pod as sent: %s", raw)
	}
}

// TestPodsOfTemplatesAreDrawnByTheirWorkload compares what is said of the pods of a workload
// with what pods get whose controller is known.
func TestPodsOfTemplatesAreDrawnByTheirWorkload(t *testing.T) {
	const stable = `{"env":[{"name":"A","value":"1"}],"selector":{"matchLabels":{"use":"true"}}}`
	known := stagedDefault(t, "{steps: [{percent: 50}]}", stable, 1)
	gets := func(sent *manifest.Object) string {
		t.Helper()
		out, err := simulator().try(t.Context(), sent, known)
		if err != nil {
			t.Fatal(err)
		}
		return out.PodDefaults.Of(known.All[0].Plan).Object.Revision()
	}
	seen := map[string]bool{}
	for i := range 20 {
		deployment := one(t, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-%d, namespace: team-a}, "+
			"spec: {template: {metadata: {labels: {use: 'true'}}, spec: {containers: [{name: main, image: x}]}}}}", i))
		pods, err := workload.PodsOf(deployment, "team-a", nil)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := known.owned(pods[0])
		if err != nil {
			t.Fatal(err)
		}
		running := one(t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {generateName: web-%d-5d8f-, namespace: team-a, labels: {use: 'true', pod-template-hash: 5d8f}, "+
			"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-%d-5d8f, uid: u, controller: true}]}, spec: {containers: [{name: main, image: x}]}}", i, i))
		got, want := gets(sent), gets(running)
		if got != want || want == "" {
			t.Errorf("web-%d: revision %q, want %q", i, got, want)
		}
		seen[want] = true
	}
	if len(seen) != 2 {
		t.Errorf("all got the same revision: %v", seen)
	}
}

// TestAHistoryBeforeTheFirstStep: a rollout begins with the change, and its first step is
// recorded after that.
func TestAHistoryBeforeTheFirstStep(t *testing.T) {
	d := stagedDefault(t, "{steps: [{percent: 100}]}", `{"env":[{"name":"A","value":"1"}],"selector":{"matchLabels":{"use":"true"}}}`, 0).All[0]
	if got := (&Revised{Default: d}).state(d.Plan.Revision()); got != "not begun" {
		t.Errorf("got %q", got)
	}
}
