// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/test/cases"
)

func stagedIndex(all ...*podtest.StagedDefault) *source.Index {
	index := source.NewIndex()
	for _, pd := range all {
		index.Set(pd.Compile())
	}
	return index
}

// got returns the revision that the pod gets: its variable, or "" if it has none.
func got(t testing.TB, raw []byte, index *source.Index) string {
	t.Helper()
	return revisionIn(t, cases.Apply(t, raw, handleFrom(t, raw, index)))
}

func revisionIn(t testing.TB, raw []byte) string {
	t.Helper()
	for _, value := range []string{"stable", "current"} {
		if strings.Contains(string(raw), `"name":"REVISION","value":"`+value+`"`) {
			return value
		}
	}
	return ""
}

func TestAStepIncludesItsShareOfWorkloads(t *testing.T) {
	const steps = "{steps: [{percent: 0}, {percent: 10}, {percent: 50}, {percent: 20}, {percent: 100}]}"
	before := map[string]bool{}
	for step, bounds := range [][2]int{{0, 0}, {0, 0}, {70, 130}, {450, 550}, {450, 550}, {1000, 1000}} {
		index := stagedIndex(podtest.Staged(t, steps, int32(step))) // a short list
		n := 0
		for i := range 1000 {
			name := fmt.Sprintf("web-%d", i)
			// Another template of the Deployment has another ReplicaSet.
			first := got(t, podtest.OwnedPod("ReplicaSet", name+"-5d8f7c9b6d", `"pod-template-hash":"5d8f7c9b6d"`), index)
			second := got(t, podtest.OwnedPod("ReplicaSet", name+"-7f6c5d4b3a", `"pod-template-hash":"7f6c5d4b3a"`), index)
			if first == "" || first != second {
				t.Fatalf("step %d: pods of %s get %q and %q", step, name, first, second)
			}
			if first == "current" {
				n++
			} else if before[name] {
				t.Errorf("step %d: %s gets the stable revision again", step, name)
			}
			before[name] = first == "current"
		}
		if n < bounds[0] || n > bounds[1] {
			t.Errorf("step %d: %d of 1000 workloads get the current revision, want %v", step, n, bounds)
		}
	}
}

func TestWorkloads(t *testing.T) {
	for what, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"a Deployment":                      {podtest.OwnedPod("ReplicaSet", "web-5d8f", `"pod-template-hash":"5d8f"`), "ReplicaSet/web"},
		"a ReplicaSet of its own":           {podtest.OwnedPod("ReplicaSet", "web-5d8f", ``), "ReplicaSet/web-5d8f"},
		"a CronJob":                         {podtest.OwnedPod("Job", "report-29384756", ``), "Job/report"},
		"a Job":                             {podtest.OwnedPod("Job", "train-2", ``), "Job/train-2"},
		"a StatefulSet":                     {podtest.OwnedPod("StatefulSet", "db", ``), "StatefulSet/db"},
		"a pod":                             {[]byte(`{"metadata":{"name":"p"}}`), "Pod/p"},
		"invalid owners":                    {[]byte(`{"metadata":{"generateName":"p-","ownerReferences":"x"}}`), "Pod/p-"},
		"owners of which none is in charge": {[]byte(`{"metadata":{"name":"p","ownerReferences":[{"kind":"A","name":"b"}]}}`), "Pod/p"},
	} {
		md, _ := meta.ReadMetadata(c.raw)
		b := meta.NewBudget(t.Context())
		if got := meta.OfPod(&md, &b).Unit; got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

func TestPodsOfAWorkloadDifferIfAskedFor(t *testing.T) {
	index := stagedIndex(podtest.Staged(t, "{by: Pod, steps: [{percent: 50}]}", 1))
	n := 0
	for i := range 200 {
		raw := []byte(strings.Replace(string(podtest.OwnedPod("StatefulSet", "db", "")), `"generateName":"db-"`, fmt.Sprintf(`"name":"db-%d"`, i), 1))
		if got(t, raw, index) == "current" {
			n++
		}
	}
	if n < 60 || n > 140 {
		t.Errorf("%d of 200 pods get the current revision", n)
	}
}

func TestSelectorsOfSteps(t *testing.T) {
	cpd := &sallyportv1alpha1.ClusterPodDefault{}
	cpd.Name, cpd.UID, cpd.Generation = "staged", "c", 2
	pd := podtest.Staged(t, "{steps: [{namespaceSelector: {matchLabels: {canary: 'true'}}}, {podSelector: {matchExpressions: [{key: gpu, operator: Exists}]}}]}", 2)
	cpd.Spec.PodDefaultSpec = pd.Spec
	compiled := func(step int32) *plan.Plan {
		set := &revision.Set{}
		set.Add(podtest.Recorded(sallyportv1alpha1.ClusterPodDefaultKind, cpd.ObjectMeta, pd.Stable,
			&sallyportv1alpha1.RevisionRollout{Revision: plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec)), Step: step}))
		return plan.CompileCluster(cpd).With(set)
	}
	for what, c := range map[string]struct {
		step      int32
		namespace map[string]string
		labels    string
		want      string
	}{
		"the canary namespace":            {1, map[string]string{"canary": "true"}, "", "current"},
		"another namespace":               {1, nil, `"gpu":"a"`, "stable"},
		"the canary namespace stays":      {2, map[string]string{"canary": "true"}, "", "current"},
		"a pod that the second step adds": {2, nil, `"gpu":"a"`, "current"},
		"another pod":                     {2, nil, `"cpu":"a"`, "stable"},
	} {
		index := source.NewIndex()
		index.SetNamespace(podtest.Namespace, c.namespace)
		index.Set(compiled(c.step))
		if got := got(t, podtest.OwnedPod("StatefulSet", "db", c.labels), index); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	index := source.NewIndex()
	index.Strict = true
	index.Set(compiled(2))
	if _, err := index.Select(t.Context(), "unknown", podmeta.Labels{}); err == nil {
		t.Error("it decides about a namespace that it does not know")
	}
}

// TestStatesOfARollout checks what pods get from what the object says and what is recorded.
func TestStatesOfARollout(t *testing.T) {
	const all = "{steps: [{percent: 100}]}"
	other := strings.Repeat("0123", plan.RevisionSize/4)
	for what, c := range map[string]struct {
		change func(pd *podtest.StagedDefault)
		want   string
	}{
		"in the step":                     {func(*podtest.StagedDefault) {}, "current"},
		"before the first step":           {func(pd *podtest.StagedDefault) { pd.State.Step = 0 }, "stable"},
		"no state of a rollout":           {func(pd *podtest.StagedDefault) { pd.State = nil }, "stable"},
		"a step that no longer exists":    {func(pd *podtest.StagedDefault) { pd.State.Step = 9 }, "current"},
		"a step below zero":               {func(pd *podtest.StagedDefault) { pd.State.Step = -1 }, "stable"},
		"the step is of another revision": {func(pd *podtest.StagedDefault) { pd.State.Revision = other }, "stable"},
		"aborted":                         {func(pd *podtest.StagedDefault) { pd.Spec.Rollout.AbortedRevision = pd.State.Revision }, "stable"},
		"another revision is aborted":     {func(pd *podtest.StagedDefault) { pd.Spec.Rollout.AbortedRevision = other }, "current"},
		"rolled back":                     {func(pd *podtest.StagedDefault) { pd.Spec.Env[0].Value = "stable" }, "stable"},
		"no rollout any more":             {func(pd *podtest.StagedDefault) { pd.Spec.Rollout = nil }, "current"},
		"the first revision":              {func(pd *podtest.StagedDefault) { pd.Stable, pd.Generation = nil, 1 }, "current"},
		"a current revision that can never work": {func(pd *podtest.StagedDefault) {
			pd.Spec.Env = append(pd.Spec.Env, pd.Spec.Env[0])
			pd.Spec.Env[1].Value = "x"
			pd.State.Revision = plan.RevisionOf(plan.Meaning(&pd.Spec))
		}, "stable"},
		"a status that says something else": {func(pd *podtest.StagedDefault) {
			pd.Status.CurrentRevision, pd.Status.Rollout = other, &kubeflowv1alpha1.RolloutStatus{StableRevision: pd.State.Revision}
		}, "current"},
	} {
		pd := podtest.Staged(t, all, 1)
		c.change(pd)
		if got := got(t, podtest.OwnedPod("StatefulSet", "db", ""), stagedIndex(pd)); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// nothing is a [revision.Source] without a record, with or without revisions at all.
type nothing bool

func (nothing) Stable(revision.Owner) *revision.Record { return nil }

func (n nothing) Keeps(string) bool { return bool(n) }

// TestTheRevisionBeforeIsKnownFromMemory checks the time between a change that adds
// spec.rollout and what the controller records then.
func TestTheRevisionBeforeIsKnownFromMemory(t *testing.T) {
	before := podtest.PodDefaults(t, []byte("{metadata: {name: staged, uid: u, generation: 2}, spec: {"+podtest.StableSpec+"}}"))[0]
	now := podtest.Staged(t, "{steps: [{percent: 100}]}", 1)
	pd := now.PodDefault
	known := plan.Pack(before, nil, nothing(true))
	gets := func(what string, c *plan.Plan, want string) {
		t.Helper()
		index := source.NewIndex()
		index.Set(c)
		if got := got(t, podtest.OwnedPod("StatefulSet", "db", ""), index); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	gets("the first change", plan.Pack(pd, known, nothing(true)), "stable")
	gets("no controller records revisions", plan.Pack(pd, known, nothing(false)), "current")
	gets("no controller records revisions, and nothing in memory", plan.Pack(pd, nil, nothing(false)), "current")
	gets("the record is deleted during a step", now.Compile().Restaged(nothing(true)), "current")
	gets("the definition is deleted during a rollout", podtest.Staged(t, "{steps: [{percent: 100}]}", 0).Compile().Restaged(nothing(false)), "stable")
	later := pd.DeepCopy()
	later.ResourceVersion, later.Spec.Env[0].Value = "9", "later"
	gets("a second change", plan.Pack(later, plan.Pack(pd, known, nothing(true)), nothing(true)), "stable")
	added := before.DeepCopy()
	added.Spec.Rollout = pd.Spec.Rollout
	if _, inProgress := plan.Pack(added, known, nothing(true)).RolledOut(); inProgress {
		t.Error("spec.rollout alone starts a rollout")
	}
	other := before.DeepCopy()
	other.UID = "v"
	for what, restarted := range map[string]*plan.Plan{"nothing": nil, "another object of that name": plan.Pack(other, nil, nothing(true))} {
		index := source.NewIndex()
		index.Set(plan.Pack(pd, restarted, nothing(true)))
		webhook, err := New(index, DefaultSettings())
		if err != nil {
			t.Fatal(err)
		}
		_, err = webhook.Handler.Handle(t.Context(), createRequest(podtest.OwnedPod("StatefulSet", "db", "")))
		if _, again := admission.RetryAfter(err); !again {
			t.Errorf("%s in memory: %v", what, err)
		}
	}
}

// TestRevisionsThatSelectOtherPods checks the pods that only one revision selects. They
// list the object, because the backstop asks for the current revision.
func TestRevisionsThatSelectOtherPods(t *testing.T) {
	const (
		onlyA = "selector: {matchLabels: {only: a}}, env: [{name: REVISION, value: stable}]"
		onlyB = "selector: {matchLabels: {only: b}}, env: [{name: REVISION, value: current}]"
	)
	for _, c := range []struct {
		step         int32
		only, want   string
		listed, mark bool
	}{
		{0, "a", "stable", true, true}, {0, "b", "", true, false}, {1, "a", "", true, false}, {1, "b", "current", true, true}, {0, "c", "", false, false},
	} {
		raw := podtest.OwnedPod("StatefulSet", "db", `"only":"`+c.only+`"`)
		index := stagedIndex(podtest.StagedFrom(t, onlyA, onlyB, "{steps: [{percent: 100}]}", c.step))
		after := cases.Apply(t, raw, handleFrom(t, raw, index))
		listed, mark := strings.Contains(string(after), `"`+meta.DecisionsAnnotation+`":"staged"`), strings.Contains(string(after), meta.Mark("staged"))
		if got := revisionIn(t, after); got != c.want || listed != c.listed || mark != c.mark {
			t.Errorf("%+v: %q, listed %v, marked %v", c, got, listed, mark)
		}
		if again := handleFrom(t, after, index); len(again.Patch) > 0 {
			t.Errorf("%+v: the second pass is not empty: %s", c, again.Patch.AppendJSON(nil))
		}
		index.Delete(podtest.Namespace, "staged")
		if index.Len() != 0 {
			t.Errorf("%+v: something stays in the index", c)
		}
	}
}

// TestReplicasThatDisagreeDoNotFlap calls for one pod twice, while the replicas know
// different steps, as with reinvocation.
func TestReplicasThatDisagreeDoNotFlap(t *testing.T) {
	const steps = "{steps: [{percent: 0}, {percent: 100}]}"
	replicas := []*source.Index{stagedIndex(podtest.Staged(t, steps, 1)), stagedIndex(podtest.Staged(t, steps, 2))}
	for i, first := range replicas {
		raw := podtest.OwnedPod("StatefulSet", "db", "")
		after := cases.Apply(t, raw, handleFrom(t, raw, first))
		if again := handleFrom(t, after, replicas[1-i]); len(again.Patch) > 0 {
			t.Errorf("%s changes again: %s", revisionIn(t, after), again.Patch.AppendJSON(nil))
		}
	}
	// A mark without a revision, as Kubeflow's webhook writes it.
	former := podtest.Staged(t, steps, 1)
	former.Spec.Rollout = nil
	raw := podtest.OwnedPod("StatefulSet", "db", "")
	after := cases.Apply(t, raw, handleFrom(t, raw, stagedIndex(former)))
	after = []byte(strings.Replace(string(after), `"`+meta.RevisionsAnnotation+`":"staged@`+former.State.Revision+`",`, "", 1))
	if again := handleFrom(t, after, replicas[0]); !again.Allowed || len(again.Patch) > 0 || len(again.Warnings) > 0 {
		t.Errorf("a pod without a revision changes again: %+v", again)
	}
	// After an abort no mark gives the current revision.
	aborted := podtest.Staged(t, steps, 2)
	aborted.Spec.Rollout.AbortedRevision = aborted.State.Revision
	marked := []byte(strings.Replace(string(raw), `"generateName"`, `"annotations":{"`+meta.Mark("staged")+`":"7","`+meta.RevisionsAnnotation+`":"staged@`+aborted.State.Revision+`"},"generateName"`, 1))
	if got := got(t, marked, stagedIndex(aborted)); got != "stable" {
		t.Errorf("a pod with a mark of the aborted revision gets %q", got)
	}
}

// FuzzRollout sends any pod while a rollout is in progress: it gets one revision, the
// same from every call.
func FuzzRollout(f *testing.F) {
	f.Add(podtest.OwnedPod("ReplicaSet", "web-5d8f", `"pod-template-hash":"5d8f"`), uint8(50), true)
	f.Add(podtest.OwnedPod("Job", "report-29384756", ""), uint8(10), false)
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"controller":true}]},"spec":{"containers":[]}}`), uint8(100), false)
	f.Fuzz(func(t *testing.T, pod []byte, percent uint8, byPod bool) {
		if !jsontext.Value(pod).IsValid() {
			return
		}
		pd := podtest.Staged(t, fmt.Sprintf("{steps: [{percent: %d}]}", percent%101), 1)
		if byPod {
			pd.Spec.Rollout.By = kubeflowv1alpha1.RolloutByPod
		}
		index := stagedIndex(pd)
		resp := handleFrom(t, pod, index)
		if !resp.Allowed || len(resp.Patch) == 0 {
			return
		}
		after := cases.Apply(t, pod, resp)
		if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
			t.Fatalf("the second pass is not empty: %+v %s\npod %s", again.Status, again.Patch.AppendJSON(nil), pod)
		}
	})
}

// BenchmarkRollout compares a pod that gets an object without, and during, a rollout.
func BenchmarkRollout(b *testing.B) {
	raw := benchmarkPod(b)
	settled := podtest.Staged(b, "{steps: [{percent: 50}]}", 0)
	settled.Spec.Env[0].Value = "stable"
	for _, bench := range []struct {
		name string
		pd   *podtest.StagedDefault
	}{{"none", settled}, {"in progress", podtest.Staged(b, "{steps: [{percent: 50}]}", 1)}} {
		index := benchmarkIndex(1)
		bench.pd.Namespace = "team-vision"
		index.Set(bench.pd.Compile())
		b.Run(bench.name, func(b *testing.B) {
			webhook, err := New(index, DefaultSettings())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if resp, err := webhook.Handler.Handle(b.Context(), createRequest(raw)); err != nil || !strings.Contains(string(resp.Patch.AppendJSON(nil)), "REVISION") {
					b.Fatalf("%v %+v", err, resp)
				}
			}
		})
	}
}
