// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

func entryOf(name string, selector metav1.LabelSelector) *Entry {
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name}}
	pd.Spec.Selector = selector
	return NewEntry(plan.Compile(pd))
}

func clusterEntryOf(name string, selector metav1.LabelSelector) *Entry {
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cpd.Spec.Selector = selector
	return NewEntry(plan.CompileCluster(cpd))
}

func by(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// wide has a selector that takes n bytes in an index.
func wide(key string, n int) metav1.LabelSelector {
	s := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}}
	for i := range n / 100 {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: fmt.Sprintf("not-%d", i), Operator: metav1.LabelSelectorOpNotIn, Values: []string{strings.Repeat("x", 60), strings.Repeat("y", 30)},
		})
	}
	return s
}

// full are PodDefaults of a tenant for which an index has no room.
func full() (entries []*Entry) {
	for i := range 70 {
		entries = append(entries, entryOf(fmt.Sprintf("a-%02d", i), wide(fmt.Sprintf("greedy-%02d", i), 12<<10)))
	}
	return entries
}

func pod(labels map[string]string, listed string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	if listed != "" {
		p.Annotations = map[string]string{meta.DecisionsAnnotation: listed}
	}
	return p
}

func TestATenantWhoFillsTheIndexTakesNoRoomFromClusterPodDefaults(t *testing.T) {
	p, entries := policy(t), append(full(), clusterEntryOf("z-last", by("proxy", "true")))
	index := Compile(entries)
	if len(index.Omitted) == 0 || index.Objects+len(index.Omitted) != len(entries) || slices.Contains(index.Omitted, "cluster/z-last") || !slices.IsSorted(index.Omitted) {
		t.Fatalf("%d objects, omitted %v", index.Objects, index.Omitted)
	}
	slices.Reverse(entries)
	if diff := cmp.Diff(index, Compile(entries)); diff != "" {
		t.Errorf("the order of entries matters: %s", diff)
	}
	last := strings.TrimPrefix(index.Omitted[len(index.Omitted)-1], "a-")
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string // in the message; empty if it passes
	}{
		"one that the ClusterPodDefault selects":                         {pod(map[string]string{"proxy": "true"}, ""), "cluster/z-last"},
		"the same, considered":                                           {pod(map[string]string{"proxy": "true"}, "cluster/z-last"), ""},
		"one that has the label of one without room":                     {pod(map[string]string{"greedy-" + last: "x"}, ""), unknown},
		"the same, on which a server has decided":                        {pod(map[string]string{"greedy-" + last: "x"}, "a-"+last), ""},
		"one that has the label of one with room":                        {pod(map[string]string{"greedy-00": "x"}, ""), "a-00"},
		"one that nothing selects":                                       {pod(map[string]string{"app": "web"}, ""), ""},
		"one without labels":                                             {pod(nil, ""), ""},
		"one of the ClusterPodDefault and without room, half considered": {pod(map[string]string{"proxy": "true", "greedy-" + last: "x"}, "a-"+last), "were not applied"},
	} {
		text := verdict(t, p, index, tc.pod)
		if tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %q, want %q", name, text, tc.want)
		}
	}
	raw, err := json.Marshal(index.Template(testNamespace))
	if err != nil || len(raw) > 1<<20 {
		t.Errorf("the index has %d bytes, %v", len(raw), err)
	}
}

func TestWhatTheIndexCannotJudgeIsRejected(t *testing.T) {
	p := policy(t)
	huge := func(selector metav1.LabelSelector) metav1.LabelSelector {
		more := wide("any", 2*maxEntryBytes)
		selector.MatchExpressions = append(selector.MatchExpressions, more.MatchExpressions[1:]...)
		return selector
	}
	long := strings.Repeat(strings.Repeat("x", 60)+".", 3) + "example.com"
	many := func(keys, values int) (entries []*Entry) {
		for i := range keys {
			for j := range values {
				entries = append(entries, entryOf(fmt.Sprintf("p-%d-%d", i, j), huge(by(fmt.Sprintf("%s/key-%d", long, i), fmt.Sprintf("%0*d", 60, j)))))
			}
		}
		return entries
	}
	for name, tc := range map[string]struct {
		entries          []*Entry
		rejected, passes []map[string]string // labels of pods
	}{
		"by a label":                     {[]*Entry{entryOf("p", huge(by("a", "1")))}, []map[string]string{{"a": "1"}}, []map[string]string{{"a": "2"}, {"b": "1"}, nil}},
		"by any value":                   {[]*Entry{entryOf("p", wide("a", 2*maxEntryBytes))}, []map[string]string{{"a": "1"}, {"a": ""}}, []map[string]string{{"b": "1"}, nil}},
		"without a label":                {[]*Entry{entryOf("p", huge(metav1.LabelSelector{}))}, []map[string]string{{"a": "1"}, nil}, nil},
		"by more values than have room":  {many(2, 200), []map[string]string{{long + "/key-0": "another"}}, []map[string]string{{"b": "1"}, nil}},
		"by more labels than have room":  {many(400, 1), []map[string]string{{"b": "1"}, nil}, nil},
		"of a ClusterPodDefault as well": {[]*Entry{clusterEntryOf("p", huge(by("a", "1")))}, []map[string]string{{"a": "1"}}, []map[string]string{{"a": "2"}}},
	} {
		index := Compile(tc.entries)
		if index.Objects != 0 || len(index.Omitted) != len(tc.entries) {
			t.Errorf("%s: %d objects, %d omitted", name, index.Objects, len(index.Omitted))
		}
		for _, labels := range tc.rejected {
			if text := verdict(t, p, index, pod(labels, "")); !strings.Contains(text, unknown) {
				t.Errorf("%s: %v passes: %q", name, labels, text)
			}
			if text := verdict(t, p, index, pod(labels, "p")); text != "" {
				t.Errorf("%s: %v on which a server has decided: %q", name, labels, text)
			}
		}
		for _, labels := range tc.passes {
			if text := verdict(t, p, index, pod(labels, "")); text != "" {
				t.Errorf("%s: %v is rejected: %q", name, labels, text)
			}
		}
	}
}
