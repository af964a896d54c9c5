// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

const (
	namedOthers   = 5 // objects named in a message
	namedPaths    = 3 // places named for each
	namedProblems = 5
)

// reasonNoRoom is a reason of the condition Accepted.
const reasonNoRoom = "NoRoomInIndex"

// desired returns the conditions that an object should have.
func (r *reconciler) desired(o *node) []metav1.Condition {
	var omitted []string
	if r.room != nil {
		omitted = r.room.Omitted(o.Plan)
	}
	conditions := []metav1.Condition{accepted(o.object, r.watcher.Unconnected(o.Plan), omitted), conflicting(o), uiSelectable(o.object)}
	for i := range conditions {
		conditions[i].ObservedGeneration = o.Generation()
		conditions[i].Message = control.Cut(conditions[i].Message)
	}
	return append(conditions, readiness(o.status, conditions[0], o.Rolls(), o.Revision())...)
}

// accepted returns the condition for whether the object is applied. Unconnected
// says why an object that selects Secrets is left out; nil if it is not. Omitted are the namespaces in
// which the backstop has no room for it.
func accepted(o *object, unconnected error, omitted []string) metav1.Condition {
	c := metav1.Condition{Type: kubeflowv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Valid"}
	switch problem := o.Problem(); {
	case problem != nil:
		c.Status, c.Reason = metav1.ConditionFalse, "Invalid"
		c.Message = "it can never work, and is left out: " + listed(strings.Split(problem.Error(), "\n"), namedProblems)
	case unconnected != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NotConnected", unconnected.Error()
	case len(omitted) > 0:
		c.Reason = reasonNoRoom
		c.Message = "it is applied, but the index of the backstop has no room for it in " + listed(omitted, namedOthers) +
			": pods there that have a label it selects by, or all if there is none, are rejected unless another object was considered for them; delete PodDefaults that are not used"
	case len(o.warnings) > 0:
		c.Reason, c.Message = "ValidWithWarnings", listed(o.warnings, namedProblems)
	}
	return c
}

func conflicting(n *node) metav1.Condition {
	c := metav1.Condition{Type: kubeflowv1alpha1.ConditionConflicting, Status: metav1.ConditionFalse, Reason: "NoConflict", Message: n.text}
	switch {
	case len(n.others) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, "Disagreement"
	case n.more:
		c.Status, c.Reason = metav1.ConditionUnknown, "TooManyToCompare"
	}
	return c
}

// conflictText returns the message about conflicting objects.
func conflictText(n *node, others []*node, places map[*node][]string, more bool) string {
	if len(others) == 0 {
		if more {
			return fmt.Sprintf("it was compared with %d objects that speak about the same fields of a pod, and there are more", maxCompared)
		}
		return ""
	}
	var parts []string
	for _, other := range others[:min(len(others), namedOthers)] {
		parts = append(parts, compare.Disagreement(n.Plan, other.Plan, places[other], namedPaths))
	}
	text := strings.Join(parts, "; ")
	if unnamed := len(others) - namedOthers; unnamed > 0 {
		text += fmt.Sprintf("; and %d more", unnamed)
	}
	if more {
		text += " at least"
	}
	return control.Cut(text)
}

// listed joins the first texts and adds how many more there are.
func listed(texts []string, most int) string {
	if more := len(texts) - most; more > 0 {
		return strings.Join(texts[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(texts, "; ")
}

// outdated reports whether the observed status differs from the desired one, ignoring
// transition times. The revision of an object with a rollout is left to the roller.
func (o *object) outdated(conditions []metav1.Condition) bool {
	status := o.status
	if status.ObservedGeneration != o.Generation() || o.Rolls() == nil && status.CurrentRevision != o.Revision() {
		return true
	}
	if meta.FindStatusCondition(status.Conditions, kubeflowv1alpha1.ConditionStalled) != nil && meta.FindStatusCondition(conditions, kubeflowv1alpha1.ConditionStalled) == nil {
		return true
	}
	return slices.ContainsFunc(conditions, func(want metav1.Condition) bool {
		have := meta.FindStatusCondition(status.Conditions, want.Type)
		return have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message ||
			have.ObservedGeneration != want.ObservedGeneration
	})
}

// uiSelectable returns the condition for whether the forms of Kubeflow's web
// applications can offer the object.
func uiSelectable(o *object) metav1.Condition {
	c := metav1.Condition{Type: kubeflowv1alpha1.ConditionUISelectable, Status: metav1.ConditionFalse, Reason: "NotByOneLabel"}
	if o.Namespace() == "" {
		c.Reason, c.Message = "ClusterScoped", "forms list the PodDefaults of a namespace only"
	} else if c.Message = o.UISelectable(); c.Message == "" {
		c.Status, c.Reason = metav1.ConditionTrue, "ByOneLabel"
	}
	return c
}
