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
func (c *Plan) Identity() store.Identity {
	return store.Identity{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: c.name}, UID: c.UID, ResourceVersion: c.ResourceVersion}
}

// Generation is the object's metadata.generation.
func (c *Plan) Generation() int64 { return c.generation }

// Status is the observed status. It must not be changed.
func (c *Plan) Status() *kubeflowv1alpha1.PodDefaultStatus { return &c.status }

// Spec is the object's PodDefaultSpec as JSON, nil if it is too large for any pod. It
// must not be changed.
func (c *Plan) Spec() []byte { return c.packed }

// Selector selects pods. It is nil if invalid.
func (c *Plan) Selector() labels.Selector { return c.selector }

// NamespaceSelector selects the namespaces of a ClusterPodDefault. Nil selects all.
func (c *Plan) NamespaceSelector() labels.Selector { return c.namespaces }

// Decision is the object's name in [meta.DecisionsAnnotation].
func (c *Plan) Decision() string { return c.decision }

// Injects reports whether the object may change pods: it is valid and not in mode
// Audit.
func (c *Plan) Injects() bool { return c.problem == nil && !c.Audit && c.selector != nil }

// AllowExclude reports whether a pod can exclude itself from the object, as from every
// PodDefault. Other objects are selected also by labels that objects add.
func (c *Plan) AllowExclude() bool { return c.allowExclude }

// UISelectable is empty if the forms of Kubeflow's web applications can offer the
// object, and otherwise the reason why not.
func (c *Plan) UISelectable() string { return c.forms }

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
