// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// TestIndexSelectsWhatEverySelectorWould changes an index at random and compares it
// with evaluating every selector.
func TestIndexSelectsWhatEverySelectorWould(t *testing.T) {
	value := rapid.SampledFrom([]string{"1", "2", ""})
	drawSelector := rapid.Custom(func(t *rapid.T) metav1.LabelSelector {
		selector := metav1.LabelSelector{MatchLabels: rapid.MapOfN(drawName, value, 0, 2).Draw(t, "matchLabels")}
		for range rapid.IntRange(0, 2).Draw(t, "expressions") {
			expression := metav1.LabelSelectorRequirement{Key: drawName.Draw(t, "key")}
			expression.Operator = rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Equals"}).Draw(t, "operator")
			if expression.Operator == "In" || expression.Operator == "NotIn" {
				expression.Values = rapid.SliceOfNDistinct(value, 1, 2, rapid.ID[string]).Draw(t, "values")
			}
			selector.MatchExpressions = append(selector.MatchExpressions, expression)
		}
		return selector
	})
	rapid.Check(t, func(rt *rapid.T) {
		index := source.NewIndex()
		objects := map[string]*kubeflowv1alpha1.PodDefault{}
		for range rapid.IntRange(0, 20).Draw(rt, "changes") {
			name := rapid.SampledFrom([]string{"x", "y", "z", "w"}).Draw(rt, "name")
			if rapid.IntRange(0, 3).Draw(rt, "change") == 0 {
				index.Delete(podtest.Namespace, name)
				delete(objects, name)
				continue
			}
			pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: name}}
			pd.Spec.Selector = drawSelector.Draw(rt, "selector")
			index.Set(plan.Compile(pd))
			objects[name] = pd
		}
		if index.Len() != len(objects) {
			rt.Fatalf("the index holds %d of %d", index.Len(), len(objects))
		}
		set := rapid.MapOf(drawName, value).Draw(rt, "labels")
		var want []string
		for name, pd := range objects {
			selector, err := metav1.LabelSelectorAsSelector(&pd.Spec.Selector)
			if err == nil && selector.Matches(labels.Set(set)) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		selected, err := index.Select(t.Context(), podtest.Namespace, podmeta.LabelsOf(set))
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, c := range selected {
			got = append(got, c.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestReplaceForgetsWhatIsNotInTheList(t *testing.T) {
	named := func(name string) *plan.Plan {
		return plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: name}})
	}
	w := newGoneWorld(t)
	w.PodDefaults.Set(named("old"))
	w.PodDefaults.Replace([]*plan.Plan{named("new"), named("other")})
	all := w.All(podtest.Namespace)
	if len(all) != 2 || all[0].Name() != "new" || all[1].Name() != "other" {
		t.Errorf("the index holds %v", all)
	}
	if all := w.All("elsewhere"); all != nil {
		t.Errorf("another namespace holds %v", all)
	}
}

// TestIndexMayChangeWhilePodsAreReviewed is for the race detector.
func TestIndexMayChangeWhilePodsAreReviewed(t *testing.T) {
	index := source.NewIndex()
	webhook, err := New(index, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := range 200 {
				pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: fmt.Sprint(w), ResourceVersion: fmt.Sprint(i)}}
				pd.Spec.Env = []corev1.EnvVar{{Name: fmt.Sprint("E", w), Value: "1"}}
				index.Set(plan.Compile(pd))
				if i%10 == 0 {
					index.Delete(podtest.Namespace, pd.Name)
				}
			}
		})
		group.Go(func() {
			for range 200 {
				raw := []byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a"}]}}`)
				resp, err := webhook.Handler.Handle(t.Context(), createRequest(raw))
				if err != nil || !resp.Allowed {
					t.Errorf("%v %+v", err, resp)
				}
			}
		})
	}
	group.Wait()
}

// TestOnlyWhatAPodSelectsIsUnpacked: other objects cost no more than their JSON,
// however many there are.
func TestOnlyWhatAPodSelectsIsUnpacked(t *testing.T) {
	index := source.NewIndex()
	for i := range 1000 {
		index.Set(plan.Pack(hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) {
			s.Selector.MatchLabels = map[string]string{fmt.Sprint("use", i%500): "true"}
			s.Env = variables(3, 1, "x")
		}), nil, nil))
	}
	for range 2 {
		pod := rawPod("", `{"name":"c%d"}`, 1)
		pod = bytes.Replace(pod, []byte(`"a":"b"`), []byte(`"use7":"true"`), 1)
		if resp := handleFrom(t, pod, index); !resp.Allowed || len(resp.Patch) == 0 {
			t.Fatalf("%+v", resp)
		}
		var unpacked []string
		for _, c := range index.All(podtest.Namespace) {
			if c.Additions != nil {
				unpacked = append(unpacked, c.Name())
			}
		}
		if want := []string{"pd507", "pd7"}; !slices.Equal(unpacked, want) {
			t.Errorf("unpacked are %v, want %v", unpacked, want)
		}
	}
}

// TestManyReviewsUnpackAnObjectOnce runs with the race detector.
func TestManyReviewsUnpackAnObjectOnce(t *testing.T) {
	index := source.NewIndex()
	index.Set(plan.Pack(hostileObject("pd", func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(100, 1, "x") }), nil, nil))
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if resp := handleFrom(t, rawPod("", `{"name":"c%d"}`, 1), index); len(resp.Patch) == 0 {
				t.Error("nothing was added")
			}
		})
	}
	group.Wait()
}

// TestWhatSelectsAPodIsBoundedInSize checks that one pod cannot cause megabytes to be
// unpacked.
func TestWhatSelectsAPodIsBoundedInSize(t *testing.T) {
	index := source.NewIndex()
	for i := range 5 {
		index.Set(plan.Pack(hostileObject(fmt.Sprint("pd", i), func(s *kubeflowv1alpha1.PodDefaultSpec) { s.Env = variables(1, 900<<10, "x") }), nil, nil))
	}
	resp := handleFrom(t, rawPod("", `{"name":"c%d"}`, 1), index)
	if resp.Allowed || !strings.Contains(resp.Status.Message, "the specs of those that select it have 46") {
		t.Errorf("%+v", resp)
	}
	for _, c := range index.All(podtest.Namespace) {
		if c.Additions != nil {
			t.Errorf("%s is unpacked", c)
		}
	}
}
