// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// roller records revisions and moves the steps of rollouts while this replica leads. Its
// state is in the revisions, so the next leader continues where this one ended. Statuses
// only show it.
type roller struct {
	*Controller
	queue    *control.Controller[key]
	recorder events.EventRecorder
	now      func() time.Time
	history  *history

	mu   sync.Mutex
	told map[types.UID]string // resourceVersions of revisions that an event was about
}

// historyLimit returns the limit of revisions of an object, beside those in use.
func historyLimit(c *plan.Plan) int {
	limit, _ := rawjson.Lookup(c.Spec(), "revisionHistoryLimit")
	if n, err := strconv.Atoi(string(limit)); err == nil {
		return n
	}
	return defaultHistoryLimit
}

func newRoller(c *Controller, recorder events.EventRecorder) *roller {
	r := &roller{Controller: c, recorder: recorder, now: time.Now, history: &history{Client: c.revisions}, told: map[types.UID]string{}}
	r.queue = control.NewController(c.pace.quiet, 128*c.pace.quiet, r.reconcile)
	return r
}

// run records revisions and moves steps until the context ends.
func (r *roller) run(ctx context.Context) {
	control.Repeat(ctx, func() (again time.Duration) {
		err := r.history.readAll(ctx)
		if err == nil {
			return control.Never
		}
		if ctx.Err() == nil {
			r.log.Warn("cannot read revisions, will try again: there are no rollouts", "error", err)
			r.unavailable(ctx, err)
		}
		return r.pace.again
	})
	object := func(k key) { r.queue.Enqueue(k, 0) }
	defer r.watcher.Revisions.Handle(func(owner key) {
		r.history.changed(owner)
		object(owner)
	})()
	defer r.watcher.PodDefaults.HandleNames(object)()
	defer r.watcher.ClusterPodDefaults.HandleNames(object)()
	r.queue.Run(ctx, r.pace.writers)
}

// reasonUnavailable is a reason of the condition RolloutHealthy.
const reasonUnavailable = "RevisionsUnavailable"

// unavailable says in the statuses of objects with spec.rollout that revisions cannot be read.
func (r *roller) unavailable(ctx context.Context, problem error) {
	for _, c := range slices.Concat(r.watcher.ClusterPodDefaults.List(), r.watcher.PodDefaults.List()) {
		if c.Rolls() == nil {
			continue
		}
		next := c.Status().DeepCopy()
		setHealth(next, metav1.Condition{
			Type: kubeflowv1alpha1.ConditionRolloutHealthy, Status: metav1.ConditionUnknown, Reason: reasonUnavailable,
			Message: "changes are not staged: " + problem.Error() + ". apply the output of sallyport manifests --part crd,rbac",
		}, c.Generation())
		if err := r.show(ctx, c, next); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot write a status", "object", c.String(), "error", err)
		}
	}
}

// reconcile records the revision of an object, and enters the next step of its rollout
// when it is time.
func (r *roller) reconcile(ctx context.Context, k key) (again time.Duration, err error) {
	c := r.watcher.Get(k)
	if c == nil {
		r.history.forget(k)
		return 0, nil
	}
	if again, err = r.roll(ctx, c); err == nil || ctx.Err() != nil {
		return again, err
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return 0, nil
	case apierrors.IsNotFound(err): // deleted, and the watch will say so; or the kind is not served
		r.history.changed(k)
		return r.pace.again, nil
	}
	return 0, r.frame.Failed(ctx, err, "revision or step of a rollout", "object", c.String())
}

// roll records the revision of an object, moves its rollout, and shows that in the status.
// Again is when to look again; 0 means when the object changes.
func (r *roller) roll(ctx context.Context, c *plan.Plan) (again time.Duration, err error) {
	next := c.Status().DeepCopy()
	if c.Revision() == "" { // too large
		next.Rollout = nil
		return 0, r.show(ctx, c, next)
	}
	p, current, stable, err := r.record(ctx, c, historyLimit(c))
	if err != nil {
		return 0, err
	}
	if stable == nil {
		next.Rollout = nil
		meta.RemoveStatusCondition(&next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
		return 0, r.show(ctx, c, next)
	}
	state, again, err := r.advance(c, stable, next, func() (metav1.Condition, error) { return r.health(ctx, c) })
	if err != nil {
		return 0, err
	}
	before := stable.Rollout
	if state == nil && current.Name != stable.Name { // complete
		if _, err := p.markOnly(ctx, current); err != nil {
			return 0, err
		}
		stable = current
	} else if !equality.Semantic.DeepEqual(before, state) {
		change := &sallyportv1alpha1.RevisionRollout{}
		if state != nil {
			change = state
		}
		if stable, err = p.patch(ctx, stable, revision.Change{Rollout: change}); err != nil {
			return 0, err
		}
	}
	next.CurrentRevision, next.Rollout = current.Name, &kubeflowv1alpha1.RolloutStatus{StableRevision: stable.Name}
	if state != nil {
		next.Rollout.Step, next.Rollout.StepStartTime = state.Step, state.StepStartTime
	}
	if next.Rollout.Step == 0 {
		meta.RemoveStatusCondition(&next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	}
	r.tellSteps(c, before, state, stable, next)
	return again, r.show(ctx, c, next)
}

// show writes a status that differs.
func (r *roller) show(ctx context.Context, c *plan.Plan, next *kubeflowv1alpha1.PodDefaultStatus) error {
	setReadiness(next, c.Rolls(), c.Revision(), c.Generation())
	if equality.Semantic.DeepEqual(c.Status(), next) {
		return nil
	}
	_, err := r.patchStatus(ctx, c, c.Identity().ResourceVersion, next)
	r.metrics.writes.WithLabelValues(control.Result(err)).Inc()
	return err
}

// advance computes the state of a rollout over a stable revision: nil if none is in progress,
// or any more.
func (r *roller) advance(
	c *plan.Plan, stable *revision.Record, next *kubeflowv1alpha1.PodDefaultStatus, health func() (metav1.Condition, error),
) (state *sallyportv1alpha1.RevisionRollout, again time.Duration, err error) {
	spec := c.Rolls()
	if stable.Name == c.Revision() {
		return nil, 0, nil
	}
	now := metav1.NewTime(r.now().Truncate(time.Second))
	if state = stable.Rollout.DeepCopy(); state == nil || state.Revision != c.Revision() {
		state = &sallyportv1alpha1.RevisionRollout{Revision: c.Revision()}
		meta.RemoveStatusCondition(&next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	}
	enter := func(step int32) { state.Step, state.StepStartTime = step, &now }
	last := int32(len(spec.Steps)) // the schema limits it
	switch {
	case c.Problem() != nil || last == 0 || spec.AbortedRevision == c.Revision():
		state.Step, state.StepStartTime = 0, nil
		return state, 0, nil
	case state.Step < 1 || state.StepStartTime == nil:
		enter(1)
	case state.Step > last: // there are fewer steps than before
		enter(last)
	case state.StepStartTime.After(now.Time): // written by a leader whose clock is ahead
		enter(state.Step)
	}
	condition, err := health()
	if err != nil {
		return nil, 0, err
	}
	if state.Refused != "" && condition.Status != metav1.ConditionFalse {
		condition = unhealthy(reasonRefused, "%s", state.Refused)
	}
	setHealth(next, condition, c.Generation())
	healthy := condition.Status != metav1.ConditionFalse
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
		return nil, 0, nil
	}
	return state, again, nil
}

// tellSteps records an event for each new step, and for the end of a rollout. State is nil at
// the end, and stable then the revision that was rolled out or the one before.
func (r *roller) tellSteps(c *plan.Plan, before, state *sallyportv1alpha1.RevisionRollout, stable *revision.Record, next *kubeflowv1alpha1.PodDefaultStatus) {
	tell := func(kind, reason, format string, args ...any) {
		r.recorder.Eventf(referenceTo(c), nil, kind, reason, "Roll", format, args...)
	}
	stepped := before != nil && before.Step > 0
	switch {
	case state != nil && state.Step > 0 && (!stepped || before.Step != state.Step || before.Revision != state.Revision):
		tell(corev1.EventTypeNormal, "RolloutStep", "revision %s is in step %d", revision.Short(state.Revision), state.Step)
	case stepped && state == nil && before.Revision == stable.Name:
		tell(corev1.EventTypeNormal, "RolloutComplete", "revision %s applies to all new pods", revision.Short(stable.Name))
	case stepped && (state == nil || state.Step == 0):
		tell(corev1.EventTypeNormal, "RolloutAborted", "revision %s applies to all new pods again", revision.Short(stable.Name))
	}
	is, had := meta.FindStatusCondition(next.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy), meta.IsStatusConditionFalse(c.Status().Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	if is != nil && is.Status == metav1.ConditionFalse && !had {
		tell(corev1.EventTypeWarning, "RolloutUnhealthy", "%s", is.Message)
	}
}

// setHealth sets the condition RolloutHealthy.
func setHealth(next *kubeflowv1alpha1.PodDefaultStatus, condition metav1.Condition, generation int64) {
	is := meta.FindStatusCondition(next.Conditions, condition.Type)
	if is != nil && is.Status == condition.Status && is.Reason == condition.Reason {
		return // another number of pods is not worth a write
	}
	condition.ObservedGeneration, condition.Message = generation, control.Cut(condition.Message)
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
