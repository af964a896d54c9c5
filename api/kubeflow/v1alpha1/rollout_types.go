// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rollout defines how a new revision of an object reaches new pods. It is not part of the
// revision, so changing it starts no rollout.
//
// +kubebuilder:validation:XValidation:rule="!has(self.promotion) || !has(self.promotion.step) || self.promotion.step <= size(self.steps)",message="must be one of the steps; without it, the rollout is completed",fieldPath=".promotion.step"
// +kubebuilder:validation:XValidation:rule="!has(self.promotion) || !has(self.abortedRevision) || self.promotion.revision != self.abortedRevision",message="is abortedRevision, too: remove one of them",fieldPath=".promotion.revision"
type Rollout struct {
	// steps are entered one after the other. A pod gets the new revision if the current
	// step or an earlier one includes it.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Steps []RolloutStep `json:"steps"`

	// by is Workload (the default) or Pod. All pods of a workload get the same revision in
	// a step, unless it is Pod.
	// +optional
	// +kubebuilder:default=Workload
	By RolloutUnit `json:"by,omitempty"`

	// maxFailedPercent is the share of pods with the new revision, in percent, that may be
	// refused or fail to run. If more do, the condition RolloutHealthy is False, and no
	// further step is entered. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=10
	MaxFailedPercent *int32 `json:"maxFailedPercent,omitempty"`

	// paused stays in the current step.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// abortedRevision is the name of a revision that no new pod gets: all get the revision
	// before. It has no effect on other revisions.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{32})?$`
	AbortedRevision string `json:"abortedRevision,omitempty"`

	// promotion enters a later step of a revision without waiting, unless the condition
	// RolloutHealthy is False and it does not override that. It has no effect on other
	// revisions.
	// +optional
	Promotion *RolloutPromotion `json:"promotion,omitempty"`
}

// RolloutStep includes pods that match all of its fields.
type RolloutStep struct {
	// percent is the share of workloads, or of pods, that the step includes. Which they are
	// depends on their names only: those of a smaller percentage are also in a larger one.
	// Default 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	Percent *int32 `json:"percent,omitempty"`

	// podSelector selects pods by the labels that they have on arrival. If absent or empty,
	// it selects all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector selects namespaces by their labels. If absent or empty, it selects
	// all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// holdSeconds is how long the step lasts, in seconds. The next step then begins; after
	// the last one, all new pods get the new revision. If absent, the step lasts until it
	// is promoted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	HoldSeconds *int64 `json:"holdSeconds,omitempty"`
}

// RolloutUnit is what a percentage of a rollout counts.
//
// +kubebuilder:validation:Enum=Workload;Pod
type RolloutUnit string

// The units. An empty unit means Workload.
const (
	RolloutByWorkload RolloutUnit = "Workload"
	RolloutByPod      RolloutUnit = "Pod"
)

// RolloutPromotion names a step of the rollout of a revision.
type RolloutPromotion struct {
	// revision is the name of the new revision.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	Revision string `json:"revision"`

	// step is the step to enter, counted from 1. If absent, the rollout is completed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Step *int32 `json:"step,omitempty"`

	// force enters the step although the condition RolloutHealthy is False. The steps after
	// it wait for the condition again.
	// +optional
	Force bool `json:"force,omitempty"`
}
