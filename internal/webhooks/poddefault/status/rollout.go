// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// roller records revisions and moves the steps of rollouts while this replica leads. Its
// state is in the objects, so the next leader continues where this one ended.
type roller struct {
	*Controller
	queue    *store.Controller[key]
	recorder events.EventRecorder
	now      func() time.Time

	mu      sync.Mutex
	history history
}

// rolledSpec is the part of a spec that the roller reads.
type rolledSpec struct {
	RevisionHistoryLimit *int32                    `json:"revisionHistoryLimit"`
	Rollout              *kubeflowv1alpha1.Rollout `json:"rollout"`
}

func (s *rolledSpec) limit() int {
	if s.RevisionHistoryLimit == nil {
		return defaultHistoryLimit
	}
	return int(*s.RevisionHistoryLimit)
}

func newRoller(c *Controller, recorder events.EventRecorder) *roller {
	r := &roller{Controller: c, recorder: recorder, now: time.Now, history: history{}}
	r.queue = store.NewController(c.pace.quiet, 128*c.pace.quiet, r.reconcile)
	return r
}

// run records revisions and moves steps until the context ends.
func (r *roller) run(ctx context.Context) {
	for {
		all, err := r.readHistory(ctx)
		if err == nil {
			r.history = all
			break
		}
		if ctx.Err() == nil {
			r.log.Warn("cannot read revisions, will try again", "error", err)
		}
		select {
		case <-ctx.Done():
			r.queue.ShutDown()
			return
		case <-time.After(r.pace.again):
		}
	}
	objects := store.Handler[*poddefault.Compiled]{Changed: func(changes []store.Change[*poddefault.Compiled]) {
		for _, c := range changes {
			if c.Now != nil {
				r.queue.Enqueue(keyOf(c.Now), 0)
			} else {
				r.queue.Enqueue(keyOf(c.Before), 0)
			}
		}
	}}
	defer r.watcher.PodDefaults.Handle(objects)()
	defer r.watcher.ClusterPodDefaults.Handle(objects)()
	r.queue.Run(ctx, r.pace.writers)
}

// reconcile records the revision of an object, and enters the next step of its rollout
// when it is time.
func (r *roller) reconcile(ctx context.Context, k key) (again time.Duration, err error) {
	c := r.watcher.Get(k.namespacedName())
	if c == nil {
		r.forget(k)
		return 0, nil
	}
	spec := &rolledSpec{}
	if c.Spec() != nil {
		if err := json.Unmarshal(c.Spec(), spec); err != nil { // encoded by this program
			return 0, err
		}
	}
	if err = r.record(ctx, k, c, spec); err == nil {
		again, err = r.roll(ctx, k, c, spec.Rollout)
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		r.log.Warn("cannot record a revision or move a rollout, will try again", "object", k.String(), "error", err)
	}
	if apierrors.IsNotFound(err) { // the watch will deliver the deletion
		return 0, nil
	}
	return again, err
}

// roll writes the state of the rollout. Again is when to look again; 0 means when the
// object changes.
func (r *roller) roll(ctx context.Context, k key, c *poddefault.Compiled, spec *kubeflowv1alpha1.Rollout) (again time.Duration, err error) {
	status := c.Status()
	next := status.DeepCopy()
	if spec == nil || c.Revision() == "" {
		next.Rollout = nil
	} else if again, err = r.advance(c, spec, next, observed{
		revision: func(hash string) ([]byte, error) { return r.recorded(ctx, k, c, hash) },
		health:   func() (metav1.Condition, error) { return r.health(ctx, c, spec) },
	}); err != nil {
		return 0, err
	}
	if next.Rollout == nil || next.Rollout.Step == 0 {
		meta.RemoveStatusCondition(&next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	}
	if equality.Semantic.DeepEqual(status, next) {
		return again, nil
	}
	_, err = r.patchStatus(ctx, c, c.Identity().ResourceVersion, next)
	r.metrics.writes.WithLabelValues(result(err)).Inc()
	if err != nil {
		return 0, err
	}
	r.tellSteps(c, status, next)
	return again, nil
}

// observed is what a rollout needs to know about the cluster.
type observed struct {
	revision func(hash string) (meaning []byte, err error) // nil if there is none
	health   func() (metav1.Condition, error)
}

// advance computes the state of a rollout.
func (r *roller) advance(c *poddefault.Compiled, spec *kubeflowv1alpha1.Rollout, next *kubeflowv1alpha1.PodDefaultStatus, known observed) (again time.Duration, err error) {
	was, now := c.Status(), metav1.NewTime(r.now().Truncate(time.Second))
	state := next.Rollout
	next.CurrentRevision = c.Revision()
	settled := func() {
		next.Rollout = &kubeflowv1alpha1.RolloutStatus{StableRevision: c.Revision(), StableSpec: &runtime.RawExtension{Raw: c.Meaning()}}
	}
	if stable, _ := c.RolledOut(); state == nil || state.StableSpec == nil || stable == nil && state.StableRevision != c.Revision() {
		// The object has had no rollout until now, or someone has edited its status.
		before := was.CurrentRevision
		if state != nil {
			before = state.StableRevision
		}
		var spec []byte
		if before != "" && before != c.Revision() {
			if spec, err = known.revision(before); err != nil {
				return 0, err
			}
		}
		if spec == nil {
			if settled(); before != "" && before != c.Revision() {
				r.recorder.Eventf(referenceTo(c), nil, corev1.EventTypeWarning, "RevisionNotFound", "Roll",
					"the revision before, %s, no longer exists: %s applies to all new pods", before, c.Revision())
			}
			return 0, nil
		}
		state = &kubeflowv1alpha1.RolloutStatus{StableRevision: before, StableSpec: &runtime.RawExtension{Raw: spec}}
		next.Rollout = state
	}
	if state.StableRevision == c.Revision() {
		settled()
		return 0, nil
	}
	enter := func(step int32) { state.Step, state.StepStartTime = step, &now }
	last := int32(len(spec.Steps)) //nolint:gosec // the schema limits it
	switch {
	case c.Problem() != nil || last == 0 || spec.AbortedRevision == c.Revision():
		state.Step, state.StepStartTime = 0, nil
		return 0, nil
	case was.CurrentRevision != c.Revision() || state.Step < 1 || state.StepStartTime == nil:
		meta.RemoveStatusCondition(&next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
		enter(1)
	case state.Step > last: // there are fewer steps than before
		enter(last)
	case state.StepStartTime.After(now.Time): // written by a leader whose clock is ahead
		enter(state.Step)
	}
	condition, err := known.health()
	if err != nil {
		return 0, err
	}
	setHealth(next, condition, c.Generation())
	healthy := !meta.IsStatusConditionFalse(next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	if p := spec.Promotion; p != nil && p.Revision == c.Revision() && (healthy || p.Force) {
		if step := last + 1; p.Step == nil || *p.Step > last {
			enter(step)
		} else if *p.Step > state.Step {
			enter(*p.Step)
		}
	}
	again = r.pace.health
	if hold := spec.Steps[min(state.Step, last)-1].HoldSeconds; healthy && !spec.Paused && state.Step <= last && hold != nil {
		left := time.Duration(*hold)*time.Second - now.Sub(state.StepStartTime.Time)
		if left <= 0 {
			enter(state.Step + 1)
		} else {
			again = min(again, left)
		}
	}
	if state.Step > last {
		settled()
		return 0, nil
	}
	return again, nil
}

// tellSteps records an event for each new step, and for the end of a rollout.
func (r *roller) tellSteps(c *poddefault.Compiled, was, next *kubeflowv1alpha1.PodDefaultStatus) {
	tell := func(kind, reason, format string, args ...any) {
		r.recorder.Eventf(referenceTo(c), nil, kind, reason, "Roll", format, args...)
	}
	before, state := was.Rollout, next.Rollout
	if state == nil {
		return
	}
	switch {
	case state.Step > 0 && (before == nil || before.Step != state.Step || was.CurrentRevision != next.CurrentRevision):
		tell(corev1.EventTypeNormal, "RolloutStep", "revision %s is in step %d", next.CurrentRevision, state.Step)
	case state.Step == 0 && before != nil && before.Step > 0 && state.StableRevision == next.CurrentRevision && before.StableRevision != state.StableRevision:
		tell(corev1.EventTypeNormal, "RolloutComplete", "revision %s applies to all new pods", next.CurrentRevision)
	case state.Step == 0 && before != nil && before.Step > 0:
		tell(corev1.EventTypeNormal, "RolloutAborted", "revision %s applies to all new pods again", state.StableRevision)
	}
	is, had := meta.FindStatusCondition(next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy), meta.IsStatusConditionFalse(was.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	if is != nil && is.Status == metav1.ConditionFalse && !had {
		tell(corev1.EventTypeWarning, "RolloutUnhealthy", "%s", is.Message)
	}
}

// setHealth sets the condition RolloutHealthy. Refusals are reported by the replica that
// has seen them, and hold for the revision: see [Controller.watchRefusals].
func setHealth(next *kubeflowv1alpha1.PodDefaultStatus, condition metav1.Condition, generation int64) {
	is := meta.FindStatusCondition(next.Conditions, condition.Type)
	if is != nil && is.Reason == reasonRefused && condition.Status != metav1.ConditionFalse {
		return
	}
	if is != nil && is.Status == condition.Status && is.Reason == condition.Reason {
		return // another number of pods is not worth a write
	}
	condition.ObservedGeneration, condition.Message = generation, cut(condition.Message)
	meta.SetStatusCondition(&next.Conditions, condition)
}

func percentOf(part, all int) int {
	if all == 0 {
		return 0
	}
	return 100 * part / all
}

func unhealthy(reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
