// SPDX-License-Identifier: Apache-2.0

package exemptions

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
)

// Reasons of conditions.
const (
	reasonInForce = "InForce"
	reasonEnded   = "Ended"
	reasonOff     = "Off"
	reasonInvalid = "Invalid"
)

// desired returns the status that an exemption should have. Counts says whether exemptions
// count, pods how many use this one; nil if that is not known.
//
// The conditions follow kstatus (sigs.k8s.io/cli-utils) as those of PodDefaults do. One that
// has ended has done what it is for, as a Job that is complete: a tool that has applied it
// must not report a failure from then on.
func desired(r *exempt.Record, counts bool, pods *int32, now time.Time) *sallyportv1alpha1.ExemptionStatus {
	next := r.Status.DeepCopy()
	next.ObservedGeneration, next.EndTime, next.Pods = r.Generation, nil, nil
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&next.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	problem, reason := "", ""
	switch {
	case r.Problem != nil:
		problem, reason = strings.ReplaceAll(r.Problem.Error(), "\n", "; "), reasonInvalid
	case !counts:
		problem, reason = "the server's configuration has no maxExemption, so it exempts from nothing", reasonOff
	}
	if problem != "" {
		set(sallyportv1alpha1.ConditionReady, metav1.ConditionFalse, reason, problem)
		set(sallyportv1alpha1.ConditionStalled, metav1.ConditionTrue, reason, problem)
		set(sallyportv1alpha1.ConditionInForce, metav1.ConditionFalse, reason, problem)
		return next
	}
	next.EndTime, next.Pods = &metav1.Time{Time: r.Until}, pods
	meta.RemoveStatusCondition(&next.Conditions, sallyportv1alpha1.ConditionStalled)
	if now.Before(r.Until) {
		set(sallyportv1alpha1.ConditionReady, metav1.ConditionTrue, reasonInForce, "")
		set(sallyportv1alpha1.ConditionInForce, metav1.ConditionTrue, reasonInForce, "")
		return next
	}
	const ended = "it has ended: delete it, or give it a later end"
	set(sallyportv1alpha1.ConditionReady, metav1.ConditionTrue, reasonEnded, ended)
	set(sallyportv1alpha1.ConditionInForce, metav1.ConditionFalse, reasonEnded, ended)
	return next
}
