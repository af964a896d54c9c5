// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// Limits for events. Statuses have the rest.
const eventsPerSecond, eventsBurst = 5, 100

// tell records events about changes of an object's status.
func (r *reconciler) tell(o *object, next *kubeflowv1alpha1.PodDefaultStatus) {
	was := func(name string) metav1.ConditionStatus {
		if c := meta.FindStatusCondition(o.status.Conditions, name); c != nil {
			return c.Status
		}
		return ""
	}
	for _, event := range []struct {
		condition string
		bad       metav1.ConditionStatus
		reason    string
		better    string
	}{
		{kubeflowv1alpha1.ConditionAccepted, metav1.ConditionFalse, "Invalid", "Valid"},
		{kubeflowv1alpha1.ConditionConflicting, metav1.ConditionTrue, "Conflict", "ConflictResolved"},
	} {
		c := meta.FindStatusCondition(next.Conditions, event.condition)
		before := was(event.condition)
		switch {
		case c == nil || c.Status == before:
		case c.Status != event.bad && before != event.bad || !r.told.Allow():
		case c.Status == event.bad:
			r.recorder.Eventf(o.reference(), nil, corev1.EventTypeWarning, event.reason, "Judge", "%s", c.Message)
		case before == event.bad:
			r.recorder.Eventf(o.reference(), nil, corev1.EventTypeNormal, event.better, "Judge", "%s is %s now", event.condition, c.Status)
		}
	}
}
