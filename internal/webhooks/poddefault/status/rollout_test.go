// SPDX-License-Identifier: Apache-2.0

package status

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// TestStepsOfARollout checks the state that follows from a state, the time and the health
// of pods.
func TestStepsOfARollout(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	minute := int64(60)
	healthy := metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionTrue, Reason: reasonRunning}
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	stable := envSpec("use", "stable")
	first, current := poddefault.Meaning(&stable), envSpec("use", "current")
	hash, stableHash := poddefault.RevisionOf(poddefault.Meaning(&current)), poddefault.RevisionOf(first)
	for what, c := range map[string]struct {
		change  func(pd *kubeflowv1alpha1.PodDefault)
		health  metav1.Condition
		step    int32
		started *metav1.Time
		stable  string
		again   time.Duration
	}{
		"the hold time has not passed":     {func(*kubeflowv1alpha1.PodDefault) {}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"it passes soon":                   {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StepStartTime = at(55 * time.Second) }, healthy, 1, at(55 * time.Second), stableHash, 5 * time.Second},
		"it has passed":                    {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StepStartTime = at(time.Minute) }, healthy, 2, at(0), stableHash, 15 * time.Second},
		"it has passed long ago, one step": {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StepStartTime = at(time.Hour) }, healthy, 2, at(0), stableHash, 15 * time.Second},
		"a step without hold time": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status.Rollout.Step, pd.Status.Rollout.StepStartTime = 2, at(time.Hour)
		}, healthy, 2, at(time.Hour), stableHash, 15 * time.Second},
		"the last step": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status.Rollout.Step, pd.Status.Rollout.StepStartTime = 3, at(time.Hour)
		}, healthy, 0, nil, hash, 0},
		"paused": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Paused, pd.Status.Rollout.StepStartTime = true, at(time.Hour)
		}, healthy, 1, at(time.Hour), stableHash, 15 * time.Second},
		"pods fail":   {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StepStartTime = at(time.Hour) }, unhealthy(reasonFailing, "x"), 1, at(time.Hour), stableHash, 15 * time.Second},
		"no pods yet": {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StepStartTime = at(time.Hour) }, metav1.Condition{Type: healthy.Type, Status: metav1.ConditionUnknown, Reason: reasonNoPods}, 2, at(0), stableHash, 15 * time.Second},
		"pods were refused": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status.Rollout.StepStartTime = at(time.Hour)
			pd.Status.Conditions = []metav1.Condition{unhealthy(reasonRefused, "x")}
		}, healthy, 1, at(time.Hour), stableHash, 15 * time.Second},
		"a clock that was ahead": {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StepStartTime = at(-24 * time.Hour) }, healthy, 1, at(0), stableHash, 15 * time.Second},
		"a new revision": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status.CurrentRevision, pd.Status.Rollout.Step = "0123456789", 3
		}, healthy, 1, at(0), stableHash, 15 * time.Second},
		"a state without step": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status.Rollout.Step, pd.Status.Rollout.StepStartTime = 0, nil
		}, healthy, 1, at(0), stableHash, 15 * time.Second},
		"fewer steps than before":     {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.Step = 9 }, healthy, 3, at(0), stableHash, 15 * time.Second},
		"aborted":                     {func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Rollout.AbortedRevision = hash }, healthy, 0, nil, stableHash, 0},
		"another revision is aborted": {func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Rollout.AbortedRevision = stableHash }, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"rolled back":                 {func(pd *kubeflowv1alpha1.PodDefault) { pd.Spec.Env = stable.Env }, healthy, 0, nil, stableHash, 0},
		"a step is promoted": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash, Step: new(int32(2))}
		}, healthy, 2, at(0), stableHash, 15 * time.Second},
		"a step is promoted, which was": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash, Step: new(int32(1))}
		}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"promoted although paused": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Paused, pd.Spec.Rollout.Promotion = true, &kubeflowv1alpha1.RolloutPromotion{Revision: hash}
		}, healthy, 0, nil, hash, 0},
		"promoted although pods fail": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash}
		}, unhealthy(reasonFailing, "x"), 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"promoted by force although pods fail": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash, Step: new(int32(2)), Force: true}
		}, unhealthy(reasonFailing, "x"), 2, at(0), stableHash, 15 * time.Second},
		"another revision is promoted by force": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: stableHash, Force: true}
		}, unhealthy(reasonFailing, "x"), 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"another revision is promoted": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: stableHash}
		}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"the first revision": {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status = kubeflowv1alpha1.PodDefaultStatus{} }, healthy, 0, nil, hash, 0},
		"a rollout that comes with a change": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status = kubeflowv1alpha1.PodDefaultStatus{CurrentRevision: stableHash}
		}, healthy, 1, at(0), stableHash, 15 * time.Second},
		"the revision before is lost": {func(pd *kubeflowv1alpha1.PodDefault) {
			pd.Status = kubeflowv1alpha1.PodDefaultStatus{CurrentRevision: "0123456789"}
		}, healthy, 0, nil, hash, 0},
		"a stable revision that cannot be read": {func(pd *kubeflowv1alpha1.PodDefault) { pd.Status.Rollout.StableSpec.Raw = []byte(`{"env":1}`) }, healthy, 1, at(0), stableHash, 15 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", UID: "1", Generation: 2}, Spec: *current.DeepCopy()}
			pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{HoldSeconds: &minute}, {}, {HoldSeconds: &minute}}}
			pd.Status.CurrentRevision = hash
			pd.Status.Rollout = &kubeflowv1alpha1.RolloutStatus{
				StableRevision: stableHash, StableSpec: &runtime.RawExtension{Raw: slices.Clone(first)}, Step: 1, StepStartTime: at(30 * time.Second),
			}
			c.change(pd)
			r := &roller{Controller: &Controller{log: slog.New(slog.DiscardHandler), pace: defaultPace}, now: func() time.Time { return now }, recorder: events.NewFakeRecorder(10)}
			compiled := poddefault.Compile(pd)
			next := compiled.Status().DeepCopy()
			again, err := r.advance(compiled, pd.Spec.Rollout, next, observed{
				revision: func(hash string) ([]byte, error) {
					if hash == stableHash {
						return first, nil
					}
					return nil, nil
				},
				health: func() (metav1.Condition, error) { return c.health, nil },
			})
			state := next.Rollout
			if err != nil || again != c.again || state.Step != c.step || !state.StepStartTime.Equal(c.started) || state.StableRevision != c.stable {
				t.Fatalf("%v, again in %s: %+v since %v", err, again, state, state.StepStartTime)
			}
			if got := poddefault.RevisionOf(state.StableSpec.Raw); got != c.stable {
				t.Errorf("the stable spec is of %s", got)
			}
			if next.CurrentRevision != compiled.Revision() {
				t.Errorf("the current revision is %s", next.CurrentRevision)
			}
			if c.health.Status == metav1.ConditionFalse && !meta.IsStatusConditionFalse(next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy) {
				t.Errorf("conditions: %+v", next.Conditions)
			}
		})
	}
}

func TestPodsThatFail(t *testing.T) {
	for what, c := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"runs":              {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, RestartCount: 9}}}, ""},
		"starts":            {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}}, ""},
		"crashes":           {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}, "container main: CrashLoopBackOff"},
		"has no image":      {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}, "container init: ImagePullBackOff"},
		"between crashes":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 3, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}}, "container main: 3 restarts"},
		"ended well, often": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 3, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}}, ""},
	} {
		if got := failing(&corev1.Pod{Status: c.status}); got != c.want {
			t.Errorf("a pod that %s: %q, want %q", what, got, c.want)
		}
	}
}
