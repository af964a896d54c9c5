// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/test/lab"
)

// podsOfEach is the number of pods of each workload in the test of rollouts. `make nightly`
// has twenty-five times as many workloads: 500 pods.
const podsOfEach = 2

// staging is a PodDefault and the workloads whose pods it selects.
type staging struct {
	*env
	*plugin
	t         *testing.T
	namespace string
	name      string
	workloads []client.Object

	mu    sync.Mutex
	steps []string // what the status said, without repetitions: revision/step/start
}

// testRollout stages changes of a PodDefault for pods that are made by controllers, and
// kills the leader in the middle of a step. Nobody else may move its steps.
func testRollout(t *testing.T, e *env) {
	const name = "rollout"
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e": name}}})
	args := []string{
		"--controllers", "poddefault-status", "--authority-secret", name + "/ca", lab.Set("webhooks.poddefault.freshness", poddefault.Consistent),
		lab.Set("leaderElection", "{leaseDuration: 5s, renewDeadline: 4s, retryPeriod: 200ms}"),
	}
	leads := e.serve(t, name, args...)
	follows := e.start(t, name, args...)
	follows.awaitReady(t)

	s := &staging{env: e, plugin: newPlugin(t, e), t: t, namespace: name, name: "staged"}
	for i := range 6 * *times {
		s.workloads = append(s.workloads, deployment(name, fmt.Sprint("web-", i), "1", ""))
	}
	for i := range 2 * *times {
		s.workloads = append(s.workloads, statefulSet(name, fmt.Sprint("db-", i), ""), trainJob(name, fmt.Sprint("train-", i)))
	}
	pd := envPodDefault(name, s.name)
	pd.Spec.Env[0].Value = "one"
	e.createSoon(t, pd, simplePod(name, "probe"), meta.Mark(s.name))
	for _, w := range s.workloads {
		e.create(t, w)
	}
	s.follow()
	s.expect(s.newPods(nil), "one", 1)
	eventually(t, "the first revision to be noted, from which a rollout starts", func(ctx context.Context) (bool, error) {
		pd, err := s.read(ctx)
		return err == nil && pd.Status.CurrentRevision == plan.RevisionOf(plan.Meaning(&pd.Spec)), err
	})

	s.patch(`{"env":[{"name":"FROM_PODDEFAULT","value":"two"}],"rollout":{"steps":[{"percent":10},{"percent":50},{"percent":100}]}}`)
	s.await(1)
	ten := s.expect(s.newPods(s.recreate()), "two", 0.1)

	s.says(t, 0, s.command("promote"), "", "promoted to step 2")
	s.await(2)
	leads.Kill()
	fifty := s.expect(s.newPods(s.recreate()), "two", 0.5)
	for w := range ten {
		if ten[w] && !fifty[w] {
			t.Errorf("%s gets the stable revision again", w)
		}
	}
	eventually(t, "the other server to lead", func(context.Context) (bool, error) { return strings.Contains(follows.Log(), "leading=true"), nil })

	s.says(t, 0, s.command("abort"), "", "aborted")
	s.await(0)
	s.expect(s.newPods(s.recreate()), "two", 0)

	s.patch(`{"rollout":{"abortedRevision":null,"promotion":null}}`)
	s.await(1)
	s.says(t, 0, s.command("promote"), "", "promoted to step 2")
	s.await(2)
	s.says(t, 0, s.command("promote"), "", "promoted to step 3")
	s.await(3)
	s.expect(s.newPods(s.recreate()), "two", 1)
	s.says(t, 0, s.command("promote"), "", "promoted to all new pods")
	s.await(0)

	// A rollback is a rollout, too, and begins with the same workloads.
	s.says(t, 0, s.command("undo"), "", "rolled back to revision 1")
	s.await(1)
	if back := s.expect(s.newPods(s.recreate()), "one", 0.1); !maps.Equal(back, ten) {
		t.Errorf("a rollback begins with other workloads: %v, not %v", back, ten)
	}

	want := []string{"one/0", "two/1", "two/2", "two/0", "two/1", "two/2", "two/3", "two/0", "one/1"}
	var got []string
	eventually(t, "the watch to deliver all steps", func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = slices.Clone(s.steps)
		return len(got) >= len(want), nil
	})
	if !slices.EqualFunc(got, want, func(got, want string) bool { return strings.HasPrefix(got, want+"/") }) {
		t.Errorf("the steps were %q, want each once: %q", got, want)
	}
}

func (s *staging) command(name string) []string {
	return []string{"rollout", name, "poddefault/" + s.name, "-n", s.namespace}
}

func (s *staging) read(ctx context.Context) (*kubeflowv1alpha1.PodDefault, error) {
	pd := &kubeflowv1alpha1.PodDefault{}
	return pd, s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, pd)
}

func (s *staging) patch(spec string) {
	s.t.Helper()
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}}
	if err := s.client.Patch(s.t.Context(), pd, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until the status is of the spec and the rollout in that step.
func (s *staging) await(step int32) {
	s.t.Helper()
	eventually(s.t, fmt.Sprint("step ", step), func(ctx context.Context) (bool, error) {
		pd, err := s.read(ctx)
		return err == nil && pd.Status.Rollout != nil && pd.Status.Rollout.Step == step &&
			pd.Status.CurrentRevision == plan.RevisionOf(plan.Meaning(&pd.Spec)), err
	})
}

// follow notes each state of the rollout until the test ends.
func (s *staging) follow() {
	s.t.Helper()
	watcher, err := client.NewWithWatch(s.config, client.Options{Scheme: s.client.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	events, err := watcher.Watch(s.t.Context(), &kubeflowv1alpha1.PodDefaultList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			pd, ok := event.Object.(*kubeflowv1alpha1.PodDefault)
			// Until the status is of the spec, it is of the change before.
			if !ok || pd.Status.CurrentRevision != plan.RevisionOf(plan.Meaning(&pd.Spec)) {
				continue
			}
			state := pd.Spec.Env[0].Value + "/0/"
			if r := pd.Status.Rollout; r != nil && r.Step > 0 {
				state = fmt.Sprintf("%s/%d/%s", pd.Spec.Env[0].Value, r.Step, r.StepStartTime)
			}
			s.mu.Lock()
			if len(s.steps) == 0 || s.steps[len(s.steps)-1] != state {
				s.steps = append(s.steps, state)
			}
			s.mu.Unlock()
		}
	}()
}

// recreate deletes all pods, and makes Jobs anew. It returns the pods that there were.
func (s *staging) recreate() map[types.UID]bool {
	s.t.Helper()
	remove := func(object client.Object) {
		s.t.Helper()
		err := s.client.Delete(s.t.Context(), object, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
	}
	var pods corev1.PodList
	if err := s.client.List(s.t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	for _, w := range s.workloads {
		if job, ok := w.(*batchv1.Job); ok {
			remove(trainJob(s.namespace, job.Name))
			s.create(s.t, trainJob(s.namespace, job.Name))
		}
	}
	before := map[types.UID]bool{}
	for i := range pods.Items { // one by one: a collection of hundreds takes longer than a request may
		before[pods.Items[i].UID] = true
		remove(&pods.Items[i])
	}
	return before
}

// newPods waits until each workload has all its pods, none of them from before.
func (s *staging) newPods(before map[types.UID]bool) map[string][]corev1.Pod {
	s.t.Helper()
	var of map[string][]corev1.Pod
	eventuallyWithin(s.t, soon, "new pods of all workloads", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := s.client.List(ctx, &pods, client.InNamespace(s.namespace))
		of = map[string][]corev1.Pod{}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil && !before[pod.UID] {
				of[pod.Labels["app"]] = append(of[pod.Labels["app"]], pod)
			}
		}
		complete := len(of) == len(s.workloads)
		for _, pods := range of {
			complete = complete && len(pods) == podsOfEach
		}
		return complete, err
	})
	return of
}

// expect returns which workloads get the value, and fails unless all pods of each have the
// same revision, which their marks tell, and about that share of the workloads gets it.
func (s *staging) expect(of map[string][]corev1.Pod, value string, share float64) map[string]bool {
	s.t.Helper()
	pd, err := s.read(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	current, n := plan.Compile(pd).Revision(), 0
	out := map[string]bool{}
	for workload, pods := range of {
		for i, pod := range pods {
			env := pod.Spec.Containers[0].Env
			is := len(env) == 1 && env[0].Value == value
			_, revision, _ := strings.Cut(pod.Annotations[meta.RevisionsAnnotation], "@")
			if len(env) != 1 || is != (revision == current) || i > 0 && is != out[workload] {
				s.t.Errorf("%s: variables %v, revision %s, current is %s", pod.Name, env, revision, current)
			}
			out[workload] = is
		}
		if out[workload] {
			n++
		}
	}
	// Each workload draws a number from its name. How many are below a share is binomial:
	// one in 100,000 sets of names is outside of 4.5 standard deviations.
	mean, deviation := share*float64(len(of)), math.Sqrt(share*(1-share)*float64(len(of)))
	if math.Abs(float64(n)-mean) > 4.5*deviation {
		s.t.Errorf("%d of %d workloads get %q, want %.0f ± %.0f", n, len(of), value, mean, 4.5*deviation)
	}
	return out
}

func trainJob(namespace, name string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: batchv1.JobSpec{
		Template: template(name, "1", ""), Parallelism: new(int32(podsOfEach)), Completions: new(int32(podsOfEach)),
	}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return job
}
