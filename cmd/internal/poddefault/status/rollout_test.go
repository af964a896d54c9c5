// SPDX-License-Identifier: Apache-2.0

package status

import (
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// TestStepsOfARollout checks the state that follows from a state, the time and the health
// of pods.
func TestStepsOfARollout(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	minute := int64(60)
	healthy := metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionTrue, Reason: reasonRunning}
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	stable := envSpec("use", "stable")
	first, current := plan.Meaning(&stable), envSpec("use", "current")
	hash, stableHash := plan.RevisionOf(plan.Meaning(&current)), plan.RevisionOf(first)
	for what, c := range map[string]struct {
		change  func(pd *stepped)
		health  metav1.Condition
		step    int32
		started *metav1.Time
		stable  string
		again   time.Duration
	}{
		"the hold time has not passed":     {func(*stepped) {}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"it passes soon":                   {func(pd *stepped) { pd.state.StepStartTime = at(55 * time.Second) }, healthy, 1, at(55 * time.Second), stableHash, 5 * time.Second},
		"it has passed":                    {func(pd *stepped) { pd.state.StepStartTime = at(time.Minute) }, healthy, 2, at(0), stableHash, 15 * time.Second},
		"it has passed long ago, one step": {func(pd *stepped) { pd.state.StepStartTime = at(time.Hour) }, healthy, 2, at(0), stableHash, 15 * time.Second},
		"a step without hold time": {func(pd *stepped) {
			pd.state.Step, pd.state.StepStartTime = 2, at(time.Hour)
		}, healthy, 2, at(time.Hour), stableHash, 15 * time.Second},
		"the last step": {func(pd *stepped) {
			pd.state.Step, pd.state.StepStartTime = 3, at(time.Hour)
		}, healthy, 0, nil, hash, 0},
		"paused": {func(pd *stepped) {
			pd.Spec.Rollout.Paused, pd.state.StepStartTime = true, at(time.Hour)
		}, healthy, 1, at(time.Hour), stableHash, 15 * time.Second},
		"pods fail":   {func(pd *stepped) { pd.state.StepStartTime = at(time.Hour) }, unhealthy(reasonFailing, "x"), 1, at(time.Hour), stableHash, 15 * time.Second},
		"no pods yet": {func(pd *stepped) { pd.state.StepStartTime = at(time.Hour) }, metav1.Condition{Type: healthy.Type, Status: metav1.ConditionUnknown, Reason: reasonNoPods}, 2, at(0), stableHash, 15 * time.Second},
		"pods were refused": {func(pd *stepped) {
			pd.state.StepStartTime, pd.state.Refused = at(time.Hour), "2 of 3"
		}, healthy, 1, at(time.Hour), stableHash, 15 * time.Second},
		"a clock that was ahead": {func(pd *stepped) { pd.state.StepStartTime = at(-24 * time.Hour) }, healthy, 1, at(0), stableHash, 15 * time.Second},
		"a new revision": {func(pd *stepped) {
			pd.state.Revision, pd.state.Step = stableHash, 3
		}, healthy, 1, at(0), stableHash, 15 * time.Second},
		"a state without step": {func(pd *stepped) {
			pd.state.Step, pd.state.StepStartTime = 0, nil
		}, healthy, 1, at(0), stableHash, 15 * time.Second},
		"fewer steps than before":     {func(pd *stepped) { pd.state.Step = 9 }, healthy, 3, at(0), stableHash, 15 * time.Second},
		"aborted":                     {func(pd *stepped) { pd.Spec.Rollout.AbortedRevision = hash }, healthy, 0, nil, stableHash, 0},
		"another revision is aborted": {func(pd *stepped) { pd.Spec.Rollout.AbortedRevision = stableHash }, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"rolled back":                 {func(pd *stepped) { pd.Spec.Env = stable.Env }, healthy, 0, nil, stableHash, 0},
		"a step is promoted": {func(pd *stepped) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash, Step: new(int32(2))}
		}, healthy, 2, at(0), stableHash, 15 * time.Second},
		"a step is promoted, which was": {func(pd *stepped) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash, Step: new(int32(1))}
		}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"promoted although paused": {func(pd *stepped) {
			pd.Spec.Rollout.Paused, pd.Spec.Rollout.Promotion = true, &kubeflowv1alpha1.RolloutPromotion{Revision: hash}
		}, healthy, 0, nil, hash, 0},
		"promoted although pods fail": {func(pd *stepped) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash}
		}, unhealthy(reasonFailing, "x"), 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"promoted by force although pods fail": {func(pd *stepped) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: hash, Step: new(int32(2)), Force: true}
		}, unhealthy(reasonFailing, "x"), 2, at(0), stableHash, 15 * time.Second},
		"another revision is promoted by force": {func(pd *stepped) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: stableHash, Force: true}
		}, unhealthy(reasonFailing, "x"), 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"another revision is promoted": {func(pd *stepped) {
			pd.Spec.Rollout.Promotion = &kubeflowv1alpha1.RolloutPromotion{Revision: stableHash}
		}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
		"nothing is recorded but the stable revision": {func(pd *stepped) { pd.state = nil }, healthy, 1, at(0), stableHash, 15 * time.Second},
		"a status that says something else": {func(pd *stepped) {
			pd.Status.CurrentRevision, pd.Status.Rollout = stableHash, &kubeflowv1alpha1.RolloutStatus{StableRevision: hash, Step: 3}
			pd.Status.Conditions = []metav1.Condition{unhealthy(reasonRefused, "x")}
		}, healthy, 1, at(30 * time.Second), stableHash, 15 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			pd := &stepped{PodDefault: &kubeflowv1alpha1.PodDefault{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x", UID: "1", Generation: 2}, Spec: *current.DeepCopy(),
			}}
			pd.Spec.Rollout = &kubeflowv1alpha1.Rollout{Steps: []kubeflowv1alpha1.RolloutStep{{HoldSeconds: &minute}, {}, {HoldSeconds: &minute}}}
			pd.state = &sallyportv1alpha1.RevisionRollout{Revision: hash, Step: 1, StepStartTime: at(30 * time.Second)}
			c.change(pd)
			r := &roller{Controller: &Controller{log: slog.New(slog.DiscardHandler), pace: defaultPace}, now: func() time.Time { return now }, recorder: events.NewFakeRecorder(10)}
			compiled := plan.Compile(pd.PodDefault)
			o := revision.New(ownerReference(compiled), "team-a", first, 1)
			o.Rollout = pd.state
			next := compiled.Status().DeepCopy()
			state, again, err := r.advance(compiled, revision.Prove(o), next, func() (metav1.Condition, error) { return c.health, nil })
			got := stableHash
			if state == nil {
				got, state = compiled.Revision(), &sallyportv1alpha1.RevisionRollout{Revision: compiled.Revision()}
			}
			if err != nil || again != c.again || state.Step != c.step || !state.StepStartTime.Equal(c.started) || got != c.stable || state.Revision != compiled.Revision() {
				t.Fatalf("%v, again in %s: %+v since %v, stable %s", err, again, state, state.StepStartTime, got)
			}
			if c.health.Status == metav1.ConditionFalse && !meta.IsStatusConditionFalse(next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy) {
				t.Errorf("conditions: %+v", next.Conditions)
			}
		})
	}
}

// stepped is a PodDefault with what is recorded of its rollout.
type stepped struct {
	*kubeflowv1alpha1.PodDefault
	state *sallyportv1alpha1.RevisionRollout
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
