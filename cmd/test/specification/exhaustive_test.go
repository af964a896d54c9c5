// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"flag"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyport "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Small scopes: every pod and every two objects of two variables, one label and few values, with every policy, of every kind.
var (
	smallPolicies = []kubeflow.ConflictPolicy{"", kubeflow.ConflictDeny, kubeflow.ConflictKeepPod, kubeflow.ConflictOverride, kubeflow.ConflictSkip}
	smallKinds    = []string{"PodDefault", "mandatory ClusterPodDefault", "ClusterPodDefault with allowExclude"}
	smallA        = []string{"", "1", "2"} // of the variable A; empty: none
	smallB        = []string{"", "1"}
	smallLabel    = []string{"", "1"} // of the label that selectors ask for
)

const (
	smallObjects = 2 * 3 * 2 * 2 * 5 * 3
	smallPods    = 3 * 2 * 2
)

// choose takes an index apart.
func choose[T any](n *int, of ...T) T {
	one := of[*n%len(of)]
	*n /= len(of)
	return one
}

func smallVariables(n *int) (env []corev1.EnvVar) {
	if value := choose(n, smallA...); value != "" {
		env = append(env, corev1.EnvVar{Name: "A", Value: value})
	}
	if value := choose(n, smallB...); value != "" {
		env = append(env, corev1.EnvVar{Name: "B", Value: value})
	}
	return env
}

// addSmall adds the object with that number to a world.
func addSmall(w *world, name string, n int) {
	spec := kubeflow.PodDefaultSpec{ConflictPolicy: choose(&n, smallPolicies...), Env: smallVariables(&n)}
	if choose(&n, false, true) {
		spec.Selector.MatchLabels = map[string]string{"l": "1"}
	}
	if value := choose(&n, smallLabel...); value != "" {
		spec.Labels = map[string]string{"l": value}
	}
	about := metav1.ObjectMeta{Name: name, ResourceVersion: "1", Generation: 1}
	switch kind := choose(&n, smallKinds...); kind {
	case smallKinds[0]:
		about.Namespace = namespace
		w.PodDefaults = append(w.PodDefaults, kubeflow.PodDefault{ObjectMeta: about, Spec: spec})
	default:
		w.ClusterPodDefaults = append(w.ClusterPodDefaults, sallyport.ClusterPodDefault{
			ObjectMeta: about, Spec: sallyport.ClusterPodDefaultSpec{PodDefaultSpec: spec, AllowExclude: kind == smallKinds[2]},
		})
	}
}

func smallPod(n int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i", Env: smallVariables(&n)}}}}
	if value := choose(&n, smallLabel...); value != "" {
		pod.Labels = map[string]string{"l": value}
	}
	return sentWith(pod)
}

// TestServerDoesWhatIsSpecifiedInEverySmallCase compares the server with the specification for all pods and pairs of objects of a
// small scope, each with the call that the API server makes again: more than three million calls. Without -rapid.checks of at
// least 10,000, as in make nightly, it tries every thousandth case.
func TestServerDoesWhatIsSpecifiedInEverySmallCase(t *testing.T) {
	checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	step := 997 // prime to all that an index is made of
	switch {
	case checks >= 10000:
		step = 1
	case checks >= 1000:
		step = 19
	}
	shards := runtime.GOMAXPROCS(0)
	var cases, denied atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for shard := range shards {
			t.Run(strconv.Itoa(shard), func(t *testing.T) {
				t.Parallel()
				for n := int(*seed)%step + shard*step; n < smallObjects*smallObjects*smallPods; n += shards * step {
					cases.Add(1)
					if !smallCase(t, n) {
						denied.Add(1)
					}
				}
			})
		}
	})
	t.Logf("%d cases, %d denied", cases.Load(), denied.Load())
	if cases.Load() < 1000 || denied.Load() == 0 || denied.Load() == cases.Load() {
		t.Error("they prove nothing")
	}
}

// smallCase compares one case, and reports whether the pod is admitted.
func smallCase(t *testing.T, n int) (admitted bool) {
	t.Helper()
	var w world
	rest := n
	pod := smallPod(rest % smallPods)
	rest /= smallPods
	addSmall(&w, "pd-0", rest%smallObjects)
	addSmall(&w, "pd-1", rest/smallObjects)
	c := both(t, w, pod)
	if cause, detail := difference(c); cause != "" {
		t.Fatalf("case %d: %s\n%s\n%s", n, cause, detail, printed(w, pod))
	}
	if c.stored == nil {
		return false
	}
	again := both(t, w, defaulted(c.stored))
	if cause, detail := difference(again); cause != "" {
		t.Fatalf("case %d, called again: %s\n%s\n%s", n, cause, detail, printed(w, pod))
	}
	if again.stored == nil {
		t.Fatalf("case %d: the second call denies it: %s\n%s", n, again.message, printed(w, pod))
	}
	if diff := cmp.Diff(normal(defaulted(c.stored)), normal(defaulted(again.stored)), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("case %d: the second call changes it: %s\n%s", n, diff, printed(w, pod))
	}
	return true
}
