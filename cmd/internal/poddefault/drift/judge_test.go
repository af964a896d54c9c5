// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store"
)

// podDefault selects pods with the label use=NAME.
func podDefault(name string, change func(*kubeflowv1alpha1.PodDefault)) *plan.Plan {
	pd := &kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "7", Generation: 3},
		Spec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"use": name}}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
		},
	}
	if change != nil {
		change(pd)
	}
	return plan.Compile(pd)
}

// everywhere selects all pods of namespaces with the label team.
func everywhere(name string) *plan.Plan {
	return plan.CompileCluster(&sallyportv1alpha1.ClusterPodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "9"},
		Spec: sallyportv1alpha1.ClusterPodDefaultSpec{
			PodDefaultSpec:    kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "B", Value: "1"}}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		},
	})
}

func index(objects ...*plan.Plan) *source.Index {
	out := source.NewIndex()
	out.SetNamespace("a", map[string]string{"team": "a"})
	out.SetNamespace("b", map[string]string{"team": "b"})
	for _, o := range objects {
		out.Set(o)
	}
	return out
}

// carried returns the annotations of a pod that carries the objects as they are.
func carried(objects ...*plan.Plan) map[string]string {
	annotations, revisions := map[string]string{}, []string{}
	for _, c := range objects {
		annotations[c.Mark()] = c.MarkNow().Value
		revisions = append(revisions, c.Decision()+"@"+c.Revision())
	}
	annotations[meta.RevisionsAnnotation] = strings.Join(revisions, ",")
	return annotations
}

// text describes findings: "outdated PodDefault a/x".
func text(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.State)+" "+f.Title)
	}
	return out
}

func TestFindings(t *testing.T) {
	x := podDefault("x", nil)
	earlier := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Env[0].Value = "0" })
	adds := podDefault("adds", func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Labels = map[string]string{"use2": "y"} })
	movedAdds := podDefault("adds", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.Spec.Labels, pd.Spec.Selector.MatchLabels = map[string]string{"use2": "y"}, map[string]string{"use": "others"}
	})
	byAdded := podDefault("y", func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Selector.MatchLabels = map[string]string{"use2": "y"} })
	byAddedOfCluster := plan.CompileCluster(&sallyportv1alpha1.ClusterPodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: "y", UID: "y", ResourceVersion: "9"},
		Spec:       sallyportv1alpha1.ClusterPodDefaultSpec{PodDefaultSpec: kubeflowv1alpha1.PodDefaultSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"use2": "y"}}}},
	})
	audit := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Mode = kubeflowv1alpha1.ModeAudit })
	mounts := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "of-the-pod", MountPath: "/data"}}
	})
	long := podDefault(strings.Repeat("l", 60), nil)
	all := everywhere("all")
	use := func(name string) map[string]string { return map[string]string{"use": name} }
	for name, tc := range map[string]struct {
		objects []*plan.Plan
		pod     Pod
		want    []string
	}{
		"a pod that nothing is for":             {[]*plan.Plan{x}, Pod{Labels: use("other")}, nil},
		"a pod that carries it as it is":        {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: carried(x)}, []string{"current PodDefault a/x"}},
		"a status that was written since":       {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{x.Mark(): "6", meta.RevisionsAnnotation: "x@" + x.Revision()}}, []string{"current PodDefault a/x"}},
		"a pod that carries what it was":        {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: carried(earlier)}, []string{"outdated PodDefault a/x"}},
		"a mark without a revision":             {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{x.Mark(): "5"}}, []string{"unknown PodDefault a/x"}},
		"such a mark of the same version":       {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{x.Mark(): "7"}}, []string{"current PodDefault a/x"}},
		"a revision without a mark":             {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{meta.RevisionsAnnotation: "x@" + x.Revision()}}, []string{"missing PodDefault a/x"}},
		"a mark that somebody wrote":            {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{x.Mark(): "@@\x00"}}, []string{"unknown PodDefault a/x"}},
		"a pod without it":                      {[]*plan.Plan{x}, Pod{Labels: use("x")}, []string{"missing PodDefault a/x"}},
		"an object that is gone":                {nil, Pod{Labels: use("x"), Annotations: carried(x)}, []string{"surplus PodDefault a/x"}},
		"a cluster object that is gone":         {nil, Pod{Annotations: carried(all)}, []string{"surplus ClusterPodDefault all"}},
		"a long name that is gone":              {nil, Pod{Annotations: map[string]string{long.Mark(): "1", meta.DecisionsAnnotation: long.Decision()}}, []string{"surplus PodDefault a/" + long.Name()}},
		"a label that was taken away":           {[]*plan.Plan{x}, Pod{Annotations: carried(x)}, []string{"surplus PodDefault a/x"}},
		"an object that is in mode Audit now":   {[]*plan.Plan{audit}, Pod{Labels: use("x"), Annotations: carried(x)}, []string{"surplus PodDefault a/x"}},
		"an object in mode Audit":               {[]*plan.Plan{audit}, Pod{Labels: use("x")}, nil},
		"one that was in mode Audit":            {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{meta.DecisionsAnnotation: "x"}}, []string{"missing PodDefault a/x"}},
		"one that was skipped":                  {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{meta.DecisionsAnnotation: "x", meta.SkipMarkFor("x"): "generation 3: env A"}}, nil},
		"one that was skipped and changed":      {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: map[string]string{meta.DecisionsAnnotation: "x", meta.SkipMarkFor("x"): "generation 2: env A"}}, []string{"missing PodDefault a/x"}},
		"one whose volume the pod did not have": {[]*plan.Plan{mounts}, Pod{Labels: use("x"), Annotations: map[string]string{meta.DecisionsAnnotation: "x"}}, nil},
		"a pod that excludes itself":            {[]*plan.Plan{x, all}, Pod{Labels: use("x"), Annotations: map[string]string{meta.ExcludeAnnotation: "true"}}, []string{"missing ClusterPodDefault all"}},
		"a mirror pod":                          {[]*plan.Plan{x, all}, Pod{Labels: use("x"), Annotations: map[string]string{meta.MirrorAnnotation: ""}}, nil},
		"another namespace":                     {[]*plan.Plan{x, all}, Pod{Namespace: "b", Labels: use("x")}, nil},
		"a pod that the webhook is not for":     {[]*plan.Plan{x}, Pod{Labels: use("x"), Annotations: carried(x), NotAsked: true}, []string{"surplus PodDefault a/x"}},
		"a label that another adds":             {[]*plan.Plan{adds, byAdded}, Pod{Labels: use("adds")}, []string{"missing PodDefault a/adds"}},
		"the same for a ClusterPodDefault":      {[]*plan.Plan{adds, byAddedOfCluster}, Pod{Labels: use("adds")}, []string{"missing ClusterPodDefault y", "missing PodDefault a/adds"}},
		"a label that the pod was sent with, and another adds": {
			[]*plan.Plan{adds, byAdded},
			Pod{Labels: map[string]string{"use": "adds", "use2": "y"}, Annotations: carried(adds, byAdded)},
			[]string{"current PodDefault a/adds", "current PodDefault a/y"},
		},
		"a label that another would not add any more, and selects a ClusterPodDefault": {
			[]*plan.Plan{movedAdds, byAddedOfCluster},
			Pod{Labels: map[string]string{"use": "adds", "use2": "y"}, Annotations: carried(adds, byAddedOfCluster)},
			[]string{"surplus ClusterPodDefault y", "surplus PodDefault a/adds"},
		},
		"the same for a PodDefault, which only a label of the template can have selected": {
			[]*plan.Plan{movedAdds, byAdded},
			Pod{Labels: map[string]string{"use": "adds", "use2": "y"}, Annotations: carried(adds, byAdded)},
			[]string{"surplus PodDefault a/adds", "current PodDefault a/y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.pod.Namespace == "" {
				tc.pod.Namespace = "a"
			}
			before := fmt.Sprint(tc.pod)
			got, err := New(index(tc.objects...)).Pod(t.Context(), tc.pod)
			if err != nil || !slices.Equal(text(got), tc.want) {
				t.Errorf("got %q, %v; want %q", text(got), err, tc.want)
			}
			if after := fmt.Sprint(tc.pod); after != before {
				t.Errorf("the pod was changed: %s", after)
			}
		})
	}
}

// exemption exempts a workload of the namespace a.
func exemption(t *testing.T, name string, d time.Duration, workload string, objects ...string) *exempt.Exemption {
	t.Helper()
	e, err := exempt.New(&sallyportv1alpha1.Exemption{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Spec: sallyportv1alpha1.ExemptionSpec{
			Until: metav1.Time{Time: time.Now().Add(d)}, PodDefaults: objects, Workloads: []string{workload}, Reason: "reason",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// An exempt pod lacks nothing, and one that carries the object is as one that should not.
func TestExemptPods(t *testing.T) {
	x, all := podDefault("x", nil), everywhere("all")
	source := index(x, all)
	list := []*exempt.Exemption{
		exemption(t, "now", time.Hour, "Deployment/web", "x", "cluster/all"), exemption(t, "ended", -time.Hour, "*", "x", "cluster/all"),
	}
	source.SetExemptions("a", list)
	for name, tc := range map[string]struct {
		pod  Pod
		want []string
	}{
		"a pod without them":          {Pod{Workload: "ReplicaSet/web"}, []string{"exempt ClusterPodDefault all", "exempt PodDefault a/x"}},
		"a pod that carries one":      {Pod{Workload: "ReplicaSet/web", Annotations: carried(x)}, []string{"exempt ClusterPodDefault all", "surplus PodDefault a/x"}},
		"a pod of another workload":   {Pod{Workload: "ReplicaSet/api"}, []string{"missing ClusterPodDefault all", "missing PodDefault a/x"}},
		"a pod that nobody would ask": {Pod{Workload: "ReplicaSet/web", NotAsked: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.Namespace, tc.pod.Labels = "a", map[string]string{"use": "x"}
			got, err := New(source).Pod(t.Context(), tc.pod)
			if err != nil || !slices.Equal(text(got), tc.want) {
				t.Errorf("got %q, %v; want %q", text(got), err, tc.want)
			}
			r := NewReport()
			r.Add(got, 1)
			exempt := tc.pod.Workload == "ReplicaSet/web" && !tc.pod.NotAsked
			if r.ends.Equal(list[0].Until) != exempt {
				t.Errorf("the first exemption ends at %v", r.ends)
			}
			if got := r.exempted[types.NamespacedName{Namespace: "a", Name: "now"}]; (got == 1) != exempt {
				t.Errorf("%d pods use the exemption", got)
			}
			for _, counts := range r.Objects() {
				if carried := counts.Pods[Surplus]; len(counts.Revisions) != carried {
					t.Errorf("%s: revisions %v", counts.Title, counts.Revisions)
				}
			}
		})
	}
}

// A pod that the webhook has changed carries what it should, whatever the objects are.
func TestAReviewedPodIsCurrent(t *testing.T) {
	objects := []*plan.Plan{podDefault("x", nil), everywhere("all"), podDefault("y", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.Spec.Selector.MatchLabels, pd.Spec.Env = map[string]string{"use": "x"}, []corev1.EnvVar{{Name: "C", Value: "1"}}
	})}
	source := index(objects...)
	due, _, err := match.Due(t.Context(), source, "a", "", map[string]string{"use": "x"}, nil)
	if err != nil || len(due) != 3 {
		t.Fatalf("%d objects, %v", len(due), err)
	}
	got, err := New(source).Pod(t.Context(), Pod{Namespace: "a", Labels: map[string]string{"use": "x"}, Annotations: carried(due...)})
	want := []string{"current ClusterPodDefault all", "current PodDefault a/x", "current PodDefault a/y"}
	if err != nil || !slices.Equal(text(got), want) {
		t.Errorf("got %q, %v", text(got), err)
	}
}

func TestReportCountsByRevision(t *testing.T) {
	x := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) { pd.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) })
	earlier := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Env[0].Value = "0" })
	source := index(x)
	use := map[string]string{"use": "x"}
	var pods []*store.Pod
	add := func(n int, annotations map[string]string, terminating bool) {
		for range n {
			name := fmt.Sprint("pod-", len(pods))
			pods = append(pods, &store.Pod{NamespacedName: types.NamespacedName{Namespace: "a", Name: name}, Facts: store.NewFacts(use, annotations), Terminating: terminating})
		}
	}
	add(3, carried(x), false)
	add(2, carried(earlier), false)
	add(1, nil, false)
	add(5, nil, true)
	r := report(t.Context(), source, pods, func(string, map[string]string) bool { return true })
	got := r.Of(x.String())
	if r.Pods != 6 || got.Pods[Current] != 3 || got.Pods[Outdated] != 2 || got.Pods[Missing] != 1 || got.Pods[Surplus] != 0 {
		t.Errorf("%d pods: %v", r.Pods, got.Pods)
	}
	if got.Revisions[x.Revision()] != 3 || got.Revisions[earlier.Revision()] != 2 || len(got.Revisions) != 2 {
		t.Errorf("by revision: %v", got.Revisions)
	}
	if none := r.Of("PodDefault a/none"); none.Pods[Current] != 0 || none.Object != nil {
		t.Errorf("an object without pods: %v", none)
	}
	if r := report(t.Context(), source, pods, func(string, map[string]string) bool { return false }); r.Of(x.String()).Pods[Surplus] != 5 {
		t.Errorf("pods that the webhook is not for: %v", r.Of(x.String()))
	}
}

// FuzzFindings gives the judge annotations that anyone may write.
func FuzzFindings(f *testing.F) {
	f.Add("use", "x", meta.Mark("x"), "7", "x,cluster/all")
	f.Add("use", "x", meta.RevisionsAnnotation, "x@0123456789,cluster/all@", "x,cluster/all")
	f.Add("use", "x", meta.SkipMarkFor(meta.ClusterDecision+"all"), "generation 3: ", ",,cluster/")
	f.Add("", "", meta.ExcludeAnnotation, "true", "")
	source := index(podDefault("x", nil), everywhere("all"))
	f.Fuzz(func(t *testing.T, label, value, annotation, text, listed string) {
		pod := Pod{Namespace: "a", Labels: map[string]string{label: value}, Annotations: map[string]string{annotation: text, meta.DecisionsAnnotation: listed}}
		found, err := New(source).Pod(context.Background(), pod)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, f := range found {
			if seen[f.Title] || !slices.Contains(States(), f.State) || f.State != Surplus && f.Object == nil {
				t.Errorf("%+v", f)
			}
			seen[f.Title] = true
		}
	})
}

// While an object is rolled out, a pod with the revision before has what is due to it.
func TestPodsOfTheRevisionBeforeAreCurrentUntilARolloutEnds(t *testing.T) {
	stable := podDefault("x", nil)
	staged := func(step int32) *plan.Plan {
		recorded := &revision.Set{}
		return podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) {
			meaning := plan.Meaning(&pd.Spec)
			pd.Spec.Env[0].Value = "2"
			pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(50))}}}
			if step > 0 {
				one := revision.New(&metav1.OwnerReference{
					APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind, Name: pd.Name, UID: pd.UID, Controller: new(true),
				}, pd.Namespace, meaning, 1)
				one.Labels[revision.StableLabel] = "true"
				one.Rollout = &sallyportv1alpha1.RevisionRollout{Revision: plan.RevisionOf(plan.Meaning(&pd.Spec)), Step: step}
				recorded.Add(revision.Prove(one))
			}
		}).With(recorded)
	}
	now := staged(1)
	for name, tc := range map[string]struct {
		object      *plan.Plan
		annotations map[string]string
		want        string
	}{
		"the revision before, during the rollout": {now, carried(stable), "current PodDefault a/x"},
		"the new revision, during the rollout":    {now, carried(now), "current PodDefault a/x"},
		"another one, during the rollout":         {now, map[string]string{stable.Mark(): "1", meta.RevisionsAnnotation: "x@" + strings.Repeat("0", plan.RevisionSize)}, "outdated PodDefault a/x"},
		"the revision before, when it has ended":  {staged(0), carried(stable), "outdated PodDefault a/x"},
		"the new revision, when it has ended":     {staged(0), carried(now), "current PodDefault a/x"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := New(index(tc.object)).Pod(t.Context(), Pod{Namespace: "a", Labels: map[string]string{"use": "x"}, Annotations: tc.annotations})
			if err != nil || !slices.Equal(text(got), []string{tc.want}) {
				t.Errorf("got %q, %v", text(got), err)
			}
		})
	}
}

// A label that the stable revision of an object has added is not the template's, although the current revision adds none.
func TestLabelsOfTheRevisionThatAPodCarriesSelectNothing(t *testing.T) {
	recorded, labelled := &revision.Set{}, map[string]string{"use": "x", "mesh": "y"}
	adds := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.Spec.Labels = map[string]string{"mesh": "y"}
		one := revision.New(&metav1.OwnerReference{
			APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind, Name: pd.Name, UID: pd.UID, Controller: new(true),
		}, pd.Namespace, plan.Meaning(&pd.Spec), 1)
		one.Labels[revision.StableLabel] = "true"
		recorded.Add(revision.Prove(one))
	})
	now := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{Percent: new(int32(50))}}}
	}).With(recorded)
	by := podDefault("by-label", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.Spec.Selector.MatchLabels = map[string]string{"mesh": "y"}
	})
	got, err := New(index(now, by)).Pod(t.Context(), Pod{Namespace: "a", Labels: labelled, Annotations: carried(adds)})
	if err != nil || !slices.Equal(text(got), []string{"current PodDefault a/x"}) {
		t.Errorf("got %q, %v", text(got), err)
	}
}

func TestWhatAPodDoesNotCarryItIsTooOldForOrHasPassed(t *testing.T) {
	written := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	x := podDefault("x", func(pd *kubeflowv1alpha1.PodDefault) {
		pd.CreationTimestamp = metav1.NewTime(written.Add(-time.Hour))
		pd.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Time: new(metav1.NewTime(written))}, {Manager: "sallyport", Subresource: "status", Time: new(metav1.NewTime(written.Add(time.Hour)))},
		}
	})
	for name, tc := range map[string]struct {
		created     time.Time
		annotations map[string]string
		want        State
	}{
		"older than the last change of the spec":        {written.Add(-time.Second), nil, Missing},
		"of the same second":                            {written, nil, Missed},
		"younger, and older than a write of the status": {written.Add(time.Minute), nil, Missed},
		"younger, and the webhook decided about it":     {written.Add(time.Minute), map[string]string{meta.DecisionsAnnotation: "y"}, Missing},
		"younger, with the mark":                        {written.Add(time.Minute), carried(x), Current},
	} {
		t.Run(name, func(t *testing.T) {
			shared, err := New(index(x)).Pod(t.Context(), Pod{Namespace: "a", Labels: map[string]string{"use": "x"}, Annotations: tc.annotations})
			if err != nil {
				t.Fatal(err)
			}
			before := text(shared)
			if got := text(At(tc.created, tc.annotations, shared)); !slices.Equal(got, []string{string(tc.want) + " PodDefault a/x"}) {
				t.Errorf("got %q, want %s", got, tc.want)
			}
			if after := text(shared); !slices.Equal(before, after) {
				t.Errorf("findings that pods share were %q, and are %q", before, after)
			}
		})
	}
}
