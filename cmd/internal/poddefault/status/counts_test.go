// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// counted are the counts of all objects; nil while they are not known.
type counted struct{ pods *kubeflowv1alpha1.PodCounts }

func (c *counted) Pods(types.NamespacedName) *kubeflowv1alpha1.PodCounts { return c.pods }
func (c *counted) Handle(func(types.NamespacedName)) (remove func())     { return func() {} }

// writer writes what is due, with a clock that the test moves.
type writer struct {
	*reconciler
	at time.Time
}

// write returns the written status, or nil and how long to wait.
func (w *writer) write(t *testing.T, k key) (*kubeflowv1alpha1.PodDefaultStatus, time.Duration) {
	t.Helper()
	w.compareNow()
	w.recount(k)
	o, next, wait := w.next(k)
	if next != nil {
		w.written(o, next, "1", nil)
	}
	return next, wait
}

func TestCountsAreWrittenRarelyAndDelayNoCondition(t *testing.T) {
	w := &writer{newTestReconciler(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.now = func() time.Time { return w.at }
	pods := &counted{}
	w.pods = pods
	w.set(podDefault("team-a", "x", "p", "1"))
	k := key{Namespace: "team-a", Name: "x"}

	first, _ := w.write(t, k)
	if first == nil || first.Pods != nil {
		t.Fatalf("counts that are not known: %+v", first)
	}
	pods.pods = &kubeflowv1alpha1.PodCounts{}
	if next, wait := w.write(t, k); next != nil || wait != 0 {
		t.Errorf("an object without pods: %+v, %s", next, wait)
	}
	pods.pods = &kubeflowv1alpha1.PodCounts{Current: 1}
	if next, wait := w.write(t, k); next != nil || wait != defaultPace.counts {
		t.Errorf("a moment after another write: %+v, %s", next, wait)
	}
	for i := range int32(20) { // a rollout
		pods.pods = &kubeflowv1alpha1.PodCounts{Current: i + 1}
		w.at = w.at.Add(defaultPace.counts)
		next, wait := w.write(t, k)
		if next == nil || next.Pods.Current != i+1 {
			t.Fatalf("a minute later: %+v, %s", next, wait)
		}
	}
	pods.pods = nil
	w.at = w.at.Add(defaultPace.counts)
	if next, wait := w.write(t, k); next != nil || wait != 0 {
		t.Errorf("counts that are not known any more: %+v, %s", next, wait)
	}
	w.set(podDefault("team-a", "y", "q", "2")) // a conflict
	if next, wait := w.write(t, k); next == nil || next.Pods.Current != 20 {
		t.Errorf("a condition waits %s for counts: %+v", wait, next)
	}
	w.pods = nil
	w.at = w.at.Add(defaultPace.longest)
	if next, _ := w.write(t, k); next == nil || next.Pods != nil {
		t.Errorf("nobody counts any more: %+v", next)
	}
}

func TestCountsOfManyObjectsAreWrittenAtALimitedRate(t *testing.T) {
	w := &writer{newTestReconciler(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.now = func() time.Time { return w.at }
	w.pods = &counted{}
	const objects = 50
	keys := make([]key, objects)
	for i := range keys {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		w.set(podDefault("team-a", name, name, "1"))
		keys[i] = key{Namespace: "team-a", Name: name}
	}
	for _, k := range keys {
		if next, wait := w.write(t, k); next == nil {
			t.Fatalf("%s: the first status waits %s", k, wait)
		}
	}
	w.pods = &counted{&kubeflowv1alpha1.PodCounts{Outdated: 1}}
	w.at = w.at.Add(defaultPace.counts)
	pending := map[key]bool{}
	for _, k := range keys {
		pending[k] = true
	}
	seconds := 0
	for ; len(pending) > 0 && seconds < 10*objects; seconds++ {
		for k := range pending {
			if next, _ := w.write(t, k); next != nil {
				delete(pending, k)
			}
		}
		w.at = w.at.Add(time.Second)
	}
	if seconds < objects/4 || len(pending) > 0 {
		t.Errorf("%d objects were written in %d s, %d are left", objects, seconds, len(pending))
	}
}
