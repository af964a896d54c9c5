// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Status is the observed status. It must not be changed.
func (h *Head) Status() *kubeflowv1alpha1.PodDefaultStatus { return &h.status }

// Spec is the object's PodDefaultSpec as JSON, nil if it is too large for any pod. It
// must not be changed.
func (c *Plan) Spec() []byte { return c.packed }

// Injects reports whether the object may change pods: it is valid and not in mode
// Audit.
func (h *Head) Injects() bool { return h.problem == nil && !h.Audit && h.selector != nil }

// AllowExclude reports whether a pod can exclude itself from the object, as from every
// PodDefault. Other objects are selected also by labels that objects add.
func (h *Head) AllowExclude() bool { return h.allowExclude }

// compact copies a status, with its revision if that is the current one, and shares strings common to all statuses.
func compact(status *kubeflowv1alpha1.PodDefaultStatus, revision string) kubeflowv1alpha1.PodDefaultStatus {
	out := *status
	if out.CurrentRevision != revision {
		revision = strings.Clone(out.CurrentRevision)
	}
	out.CurrentRevision = revision
	out.Conditions = slices.Clone(status.Conditions)
	for i := range out.Conditions {
		c := &out.Conditions[i]
		if word, ok := conditionTypes[c.Type]; ok {
			c.Type = word
		}
		if word, ok := conditionStatuses[c.Status]; ok {
			c.Status = word
		}
		c.Reason, c.Message = unique.Make(c.Reason).Value(), strings.Clone(c.Message)
	}
	return out
}

var (
	conditionTypes = map[string]string{
		kubeflowv1alpha1.ConditionAccepted:     kubeflowv1alpha1.ConditionAccepted,
		kubeflowv1alpha1.ConditionConflicting:  kubeflowv1alpha1.ConditionConflicting,
		kubeflowv1alpha1.ConditionUISelectable: kubeflowv1alpha1.ConditionUISelectable,
	}
	conditionStatuses = map[metav1.ConditionStatus]metav1.ConditionStatus{
		metav1.ConditionTrue: metav1.ConditionTrue, metav1.ConditionFalse: metav1.ConditionFalse, metav1.ConditionUnknown: metav1.ConditionUnknown,
	}
)

// A Head is what is known of an object without its additions: its name, the pods that it
// selects, and how it is applied to them.
type Head struct {
	Reference
	Selection
	Progress

	problem      error        // why the object can never work; nil if it can
	connects     *connections // nil if it selects no Secrets
	allowExclude bool
	Credentials  bool // see bringsCredentials
	Audit        bool
	priority     int32
	Policy       kubeflowv1alpha1.ConflictPolicy // empty: Kubeflow
	Group        string                          // of alternatives; empty for none
	Labels       []podmeta.Entry                 // added by the object
	Size         int                             // JSON size of the spec
	status       kubeflowv1alpha1.PodDefaultStatus
}

// Problem returns why the object can never work, or nil.
func (h *Head) Problem() error { return h.problem }

// Alternative reports whether the objects belong to the same exclusive group.
func (h *Head) Alternative(other *Plan) bool {
	return h.Group != "" && h.Group == other.Group
}

// Adds reports whether the object adds this label to pods.
func (h *Head) Adds(key, value string) bool {
	return slices.Contains(h.Labels, podmeta.Entry{Key: key, Value: value})
}

// AddsLabel reports whether the object adds a label with this key to pods.
func (h *Head) AddsLabel(key string) bool {
	return slices.ContainsFunc(h.Labels, func(l podmeta.Entry) bool { return l.Key == key })
}

// AddsWhatSelects reports whether a selector requires a label that the object adds.
func (h *Head) AddsWhatSelects(selector labels.Selector) bool {
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return slices.ContainsFunc(h.Labels, func(l podmeta.Entry) bool {
			return l.Key == r.Key() && r.Operator() != selection.NotIn && r.Operator() != selection.NotEquals && r.Matches(labels.Set{l.Key: l.Value})
		})
	})
}
