// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/test/cases"
)

// sentWith returns a pod that was sent with annotations, or with managedFields that claim so.
func sentWith(raw []byte, annotations map[string]string, claimed ...string) []byte {
	var members, fields []string
	for key, value := range annotations {
		members = append(members, fmt.Sprintf("%q:%q", key, value))
		fields = append(fields, fmt.Sprintf("%q:{}", "f:"+key))
	}
	for _, key := range claimed {
		fields = append(fields, fmt.Sprintf("%q:{}", "f:"+key))
	}
	text := strings.Replace(string(raw), `"f:generateName":{}`, `"f:annotations":{".":{},`+strings.Join(fields, ",")+`}`, 1)
	return []byte(strings.Replace(text, `"generateName"`, `"annotations":{`+strings.Join(members, ",")+`},"generateName"`, 1))
}

// canary returns a ClusterPodDefault of which namespaces with the label canary get the new
// revision, and its two revisions.
func canary(t *testing.T, change func(*sallyportv1alpha1.ClusterPodDefaultSpec)) (c *plan.Plan, stable, current string) {
	t.Helper()
	pd := podtest.Staged(t, "{steps: [{namespaceSelector: {matchLabels: {canary: 'true'}}}]}", 1)
	cpd := &sallyportv1alpha1.ClusterPodDefault{}
	cpd.Name, cpd.UID, cpd.ResourceVersion, cpd.Generation = "staged", "u", "7", 2
	cpd.Spec.PodDefaultSpec = pd.Spec
	before := cpd.Spec
	before.Env = []corev1.EnvVar{{Name: "REVISION", Value: "stable"}}
	if change != nil {
		change(&before)
		change(&cpd.Spec)
	}
	stable, current = plan.RevisionOf(plan.ClusterMeaning(&before)), plan.RevisionOf(plan.ClusterMeaning(&cpd.Spec))
	set := &revision.Set{}
	set.Add(podtest.Recorded(sallyportv1alpha1.ClusterPodDefaultKind, cpd.ObjectMeta, plan.ClusterMeaning(&before), &sallyportv1alpha1.RevisionRollout{Revision: current, Step: 1}))
	return plan.CompileCluster(cpd).With(set), stable, current
}

func inNamespace(c *plan.Plan, labels map[string]string) *source.Index {
	index := source.NewIndex()
	index.SetNamespace(podtest.Namespace, labels)
	index.Set(c)
	return index
}

func TestAForgedRevisionDecidesNothing(t *testing.T) {
	for _, allowExclude := range []bool{true, false} {
		cpd, stable, current := canary(t, func(spec *sallyportv1alpha1.ClusterPodDefaultSpec) { spec.AllowExclude = allowExclude })
		mark := meta.ClusterMark("staged")
		for _, c := range []struct {
			what              string
			namespace         map[string]string
			forged, want, got string
		}{
			{"a tenant outside of the canary forges the current revision", nil, current, "stable", stable},
			{"a tenant in the canary forges the stable one", map[string]string{"canary": "true"}, stable, "current", current},
		} {
			t.Run(fmt.Sprintf("%s, allowExclude %v", c.what, allowExclude), func(t *testing.T) {
				index := inNamespace(cpd, c.namespace)
				record := map[string]string{meta.RevisionsAnnotation: "cluster/staged@" + c.forged}
				marked := maps.Clone(record)
				marked[mark] = "7"
				owned := podtest.OwnedPod("StatefulSet", "db", "")
				for what, raw := range map[string][]byte{
					"a revision":            sentWith(owned, record),
					"a mark and a revision": sentWith(owned, marked),
					"a revision, and managedFields that claim a mark":      sentWith(owned, record, mark),
					"a mark and a revision, and managedFields for another": sentWith(owned, marked, meta.Mark("staged")),
					"managedFields that tell nothing":                      []byte(strings.Replace(string(sentWith(owned, marked)), `"fieldsV1"`, `"fieldsV2"`, 1)),
				} {
					after := cases.Apply(t, raw, handleFrom(t, raw, index))
					if got := revisionIn(t, after); got != c.want {
						t.Errorf("%s: the pod gets %q", what, got)
					}
					// What the pod did not bring, or must have anyway, is recorded as it is.
					if _, forgedMark := marked[mark]; !allowExclude || !forgedMark || !strings.Contains(what, "mark and") && what != "managedFields that tell nothing" {
						if !strings.Contains(string(after), "cluster/staged@"+c.got) {
							t.Errorf("%s: another revision is recorded: %s", what, after)
						}
					}
					if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
						t.Errorf("%s: the second pass is not empty: %+v %s", what, again.Status, again.Patch.AppendJSON(nil))
					}
				}
			})
		}
	}
}

func TestAPodKeepsTheRevisionOfAnEarlierCall(t *testing.T) {
	cpd, _, _ := canary(t, nil)
	in, out := inNamespace(cpd, map[string]string{"canary": "true"}), inNamespace(cpd, nil)
	for what, c := range map[string]struct {
		raw   []byte
		first *source.Index
		then  *source.Index
	}{
		"the current one": {podtest.OwnedPod("StatefulSet", "db", ""), in, out},
		"the stable one":  {podtest.OwnedPod("StatefulSet", "db", ""), out, in},
		"although it was sent with other revisions": {sentWith(podtest.OwnedPod("StatefulSet", "db", ""), map[string]string{meta.RevisionsAnnotation: "x,other@1"}), in, out},
	} {
		after := cases.Apply(t, c.raw, handleFrom(t, c.raw, c.first))
		if again := handleFrom(t, after, c.then); !again.Allowed || len(again.Patch) > 0 {
			t.Errorf("%s: it changes again: %+v %s", what, again.Status, again.Patch.AppendJSON(nil))
		}
	}
}

// A skip that came with the request lets nothing pass that must be applied.
func TestAForgedSkipDecidesNothing(t *testing.T) {
	for _, c := range []struct {
		allowExclude bool
		want         string
	}{{true, ""}, {false, "current"}} {
		cpd := &sallyportv1alpha1.ClusterPodDefault{}
		cpd.Name, cpd.Generation = "staged", 3
		cpd.Spec.Env = []corev1.EnvVar{{Name: "REVISION", Value: "current"}}
		cpd.Spec.ConflictPolicy, cpd.Spec.AllowExclude = kubeflowv1alpha1.ConflictSkip, c.allowExclude
		raw := sentWith(podtest.OwnedPod("StatefulSet", "db", ""), map[string]string{meta.SkipMarkFor(meta.ClusterDecision + "staged"): "generation 3: env X"})
		index := inNamespace(plan.CompileCluster(cpd), nil)
		after := cases.Apply(t, raw, handleFrom(t, raw, index))
		if got := revisionIn(t, after); got != c.want {
			t.Errorf("allowExclude %v: the pod gets %q, want %q", c.allowExclude, got, c.want)
		}
		if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
			t.Errorf("allowExclude %v: the second pass is not empty: %s", c.allowExclude, again.Patch.AppendJSON(nil))
		}
	}
}

func TestRevisionsThatArePresentAreRead(t *testing.T) {
	one, two := strings.Repeat("0", plan.RevisionSize), strings.Repeat("f", plan.RevisionSize)
	for value, want := range map[string]map[string]string{
		"":                                   nil,
		"a@" + one:                           {"a": one},
		"a@" + one + ",cluster/a@" + two:     {"a": one, "cluster/a": two},
		"a@" + one + ",a@" + two:             {"a": two},
		"a@" + one + "0":                     {},
		"a@" + strings.ToUpper(two):          {},
		"\"@" + one:                          {},
		"@" + one:                            {},
		",,a@,@,b," + "c@" + two + "@" + one: {},
	} {
		if got := meta.RevisionsIn(value); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func FuzzRevisions(f *testing.F) {
	revision := strings.Repeat("0", plan.RevisionSize)
	f.Add("", "", "7")
	f.Add("a@"+revision+",cluster/a@"+revision, "x", "7")
	f.Add("cluster/staged@"+revision, "generation 3: x", "")
	f.Fuzz(func(t *testing.T, recorded, skip, mark string) {
		cpd := &sallyportv1alpha1.ClusterPodDefault{}
		cpd.Name, cpd.ResourceVersion, cpd.Spec.Env = "staged", "7", []corev1.EnvVar{{Name: "REVISION", Value: "current"}}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		pod.Annotations = map[string]string{meta.RevisionsAnnotation: recorded, meta.SkipMarkFor(meta.ClusterDecision + "staged"): skip, meta.ClusterMark("staged"): mark}
		index := inNamespace(plan.CompileCluster(cpd), nil)
		raw := encodeJSON(t, pod)
		after := cases.Apply(t, raw, handleFrom(t, raw, index))
		if revisionIn(t, after) != "current" {
			t.Errorf("it is not applied: %s", after)
		}
		got := &corev1.Pod{}
		if err := json.Unmarshal(after, got); err != nil {
			t.Fatal(err)
		}
		if is := meta.RevisionsIn(got.Annotations[meta.RevisionsAnnotation])["cluster/staged"]; is != "" && is != plan.CompileCluster(cpd).Revision() {
			t.Errorf("another revision is recorded: %s", is)
		}
		if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
			t.Errorf("the second pass is not empty: %s", again.Patch.AppendJSON(nil))
		}
	})
}

// TestRevisionsOfManyObjectsFitIntoAPod gives a pod as many objects with the longest names as
// one may have: all its annotations together have at most 256 KiB (k8s.io/apimachinery,
// validation.TotalAnnotationSizeLimitB).
func TestRevisionsOfManyObjectsFitIntoAPod(t *testing.T) {
	var pds []*kubeflowv1alpha1.PodDefault
	for i := range meta.MaxObjects {
		pd := &kubeflowv1alpha1.PodDefault{}
		pd.Namespace, pd.Name, pd.ResourceVersion = podtest.Namespace, fmt.Sprintf("%03d-%s", i, strings.Repeat("a", 249)), "1234567890"
		pds = append(pds, pd)
	}
	raw := podtest.OwnedPod("StatefulSet", "db", "")
	index := indexOf(pds...)
	resp := handleFrom(t, raw, index)
	after := cases.Apply(t, raw, resp)
	pod := &corev1.Pod{}
	if err := json.Unmarshal(after, pod); err != nil {
		t.Fatal(err)
	}
	size := 0
	for key, value := range pod.Annotations {
		size += len(key) + len(value)
	}
	if most := 256 << 10; size > most-(4<<10) {
		t.Errorf("the annotations have %d bytes, and at most %d may", size, most)
	}
	if known := meta.RevisionsIn(pod.Annotations[meta.RevisionsAnnotation]); len(known) < 200 || known[pds[0].Name] == "" {
		t.Errorf("only %d revisions are recorded", len(known))
	}
	if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
		t.Errorf("the second pass is not empty: %d operations", len(again.Patch))
	}
}
