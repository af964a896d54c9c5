// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Identity implements [store.Object].
func (r *Reference) Identity() store.Identity {
	return store.Identity{NamespacedName: types.NamespacedName{Namespace: r.namespace, Name: r.name}, UID: r.UID, ResourceVersion: r.ResourceVersion}
}

// Generation is the object's metadata.generation.
func (r *Reference) Generation() int64 { return r.generation }

// Status is the observed status. It must not be changed.
func (h *Head) Status() *kubeflowv1alpha1.PodDefaultStatus { return &h.status }

// Spec is the object's PodDefaultSpec as JSON, nil if it is too large for any pod. It
// must not be changed.
func (c *Plan) Spec() []byte { return c.packed }

// Selector selects pods. It is nil if invalid.
func (s *Selection) Selector() labels.Selector { return s.selector }

// NamespaceSelector selects the namespaces of a ClusterPodDefault. Nil selects all.
func (s *Selection) NamespaceSelector() labels.Selector { return s.namespaces }

// Decision is the object's name in [meta.DecisionsAnnotation].
func (r *Reference) Decision() string { return r.decision }

// Injects reports whether the object may change pods: it is valid and not in mode
// Audit.
func (h *Head) Injects() bool { return h.problem == nil && !h.Audit && h.selector != nil }

// AllowExclude reports whether a pod can exclude itself from the object, as from every
// PodDefault. Other objects are selected also by labels that objects add.
func (h *Head) AllowExclude() bool { return h.allowExclude }

// UISelectable is empty if the forms of Kubeflow's web applications can offer the
// object, and otherwise the reason why not.
func (s *Selection) UISelectable() string { return s.forms }

// compact copies a status and shares strings common to all statuses.
func compact(status *kubeflowv1alpha1.PodDefaultStatus) kubeflowv1alpha1.PodDefaultStatus {
	out := *status
	out.Conditions = slices.Clone(status.Conditions)
	for i := range out.Conditions {
		c := &out.Conditions[i]
		if word, ok := conditionTypes[c.Type]; ok {
			c.Type = word
		}
		if word, ok := conditionStatuses[c.Status]; ok {
			c.Status = word
		}
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
