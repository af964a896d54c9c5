// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Reasons of the condition Ready. Others are those of the condition that it follows.
const (
	reasonApplied  = "Applied"
	reasonAwaiting = "AwaitingPromotion"
	reasonRolling  = "RolloutInProgress"
	reasonAborted  = "RolloutAborted"
)

// readiness returns the conditions that sum up a status for tools: Ready, and Stalled if what is
// wrong does not end by itself. Tools follow kstatus (sigs.k8s.io/cli-utils): an object is failed
// with Stalled, in progress unless Ready is True, and current otherwise. A rollout that waits for a
// person is Ready, because a tool that waited for it would never apply the promotion.
//
// Accepted is the condition for the current generation, current the name of its revision.
func readiness(status *kubeflowv1alpha1.PodDefaultStatus, accepted metav1.Condition, rollout *kubeflowv1alpha1.Rollout, current string) []metav1.Condition {
	ready, stalled := readyOf(status, accepted, rollout, current)
	ready.Type, ready.ObservedGeneration = kubeflowv1alpha1.ConditionReady, accepted.ObservedGeneration
	if !stalled {
		return []metav1.Condition{ready}
	}
	stall := ready
	stall.Type, stall.Status = kubeflowv1alpha1.ConditionStalled, metav1.ConditionTrue
	return []metav1.Condition{ready, stall}
}

func readyOf(
	status *kubeflowv1alpha1.PodDefaultStatus, accepted metav1.Condition, rollout *kubeflowv1alpha1.Rollout, current string,
) (ready metav1.Condition, stalled bool) {
	is := func(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, Message: control.Cut(fmt.Sprintf(format, args...))}
	}
	if accepted.Status != metav1.ConditionTrue || accepted.Reason == reasonNoRoom {
		return is(metav1.ConditionFalse, accepted.Reason, "%s", accepted.Message), true
	}
	if rollout == nil {
		return is(metav1.ConditionTrue, reasonApplied, ""), false
	}
	health := meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	state := status.Rollout
	switch {
	case health != nil && health.Reason == reasonUnavailable:
		return is(metav1.ConditionFalse, health.Reason, "%s", health.Message), false
	case state == nil || status.CurrentRevision != current:
		return is(metav1.ConditionUnknown, reasonRolling, "revision %s is not rolled out yet", revision.Short(current)), false
	case state.StableRevision == current:
		return is(metav1.ConditionTrue, reasonApplied, ""), false
	case rollout.AbortedRevision == current:
		return is(metav1.ConditionFalse, reasonAborted, "new pods get revision %s, because spec.rollout.abortedRevision is %s",
			revision.Short(state.StableRevision), revision.Short(current)), true
	case health != nil && health.Status == metav1.ConditionFalse:
		return is(metav1.ConditionFalse, health.Reason, "step %d of %d: %s", state.Step, len(rollout.Steps), health.Message), true
	case state.Step < 1 || int(state.Step) > len(rollout.Steps):
		return is(metav1.ConditionUnknown, reasonRolling, "revision %s is not rolled out yet", revision.Short(current)), false
	case rollout.Paused || rollout.Steps[state.Step-1].HoldSeconds == nil:
		return is(metav1.ConditionTrue, reasonAwaiting, "revision %s waits in step %d of %d", revision.Short(current), state.Step, len(rollout.Steps)), false
	}
	return is(metav1.ConditionUnknown, reasonRolling, "revision %s is in step %d of %d", revision.Short(current), state.Step, len(rollout.Steps)), false
}

// setReadiness sets the conditions of [readiness] in a status, unless what they follow is about
// another generation: then the reconciler sets them.
func setReadiness(status *kubeflowv1alpha1.PodDefaultStatus, rollout *kubeflowv1alpha1.Rollout, current string, generation int64) {
	accepted := meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionAccepted)
	if accepted == nil || accepted.ObservedGeneration != generation {
		return
	}
	setConditions(status, readiness(status, *accepted, rollout, current))
}

// setConditions sets conditions, and removes Stalled if it is not among them.
func setConditions(status *kubeflowv1alpha1.PodDefaultStatus, conditions []metav1.Condition) {
	for _, condition := range conditions {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if meta.FindStatusCondition(conditions, kubeflowv1alpha1.ConditionStalled) == nil {
		meta.RemoveStatusCondition(&status.Conditions, kubeflowv1alpha1.ConditionStalled)
	}
}
