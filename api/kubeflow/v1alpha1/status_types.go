// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of conditions in a status.
const (
	// ConditionReady sums up the others for tools, by the rules of kstatus: True if the object
	// is applied as it says, or its rollout waits for a promotion; Unknown while a rollout goes
	// on; False if the object cannot work or its rollout is stuck.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, while Ready is False and does not become True
	// by itself. Tools take such an object as failed.
	ConditionStalled = "Stalled"
	// ConditionAccepted is True if the object is valid. If False, the message lists every
	// problem.
	ConditionAccepted = "Accepted"
	// ConditionConflicting is True if this object and another one can match the same pod
	// and conflict there. The message names the other objects.
	ConditionConflicting = "Conflicting"
	// ConditionUISelectable is True if Kubeflow's forms can offer the object: matchLabels
	// of its selector has exactly one key, with the value "true".
	ConditionUISelectable = "UISelectable"
	// ConditionRolloutHealthy is False if too many pods with the new revision are refused
	// or fail to run. It exists while a rollout is in progress.
	ConditionRolloutHealthy = "RolloutHealthy"
)

// PodDefaultStatus is the observed state of a PodDefault.
type PodDefaultStatus struct {
	// observedGeneration is the metadata.generation that the conditions were computed for.
	// -1: for none yet. (+sallyport)
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the object. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// currentRevision is the name of the revision that the spec has. (+sallyport)
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// rollout is the state of the rollout. It exists if the spec has a rollout.
	// (+sallyport)
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// pods counts running pods. It is written at most once a minute, so it lags behind; the
	// metric sallyport_poddefault_pods does not. (+sallyport)
	// +optional
	Pods *PodCounts `json:"pods,omitempty"`
}

// RolloutStatus shows the state of a rollout. Nothing reads it: the state is in the revisions
// of the object.
type RolloutStatus struct {
	// stableRevision is the name of the revision before, which pods get that no step
	// includes. It equals currentRevision when no rollout is in progress.
	// +required
	StableRevision string `json:"stableRevision"`

	// step is the current step, counted from 1. It is absent when no rollout is in
	// progress.
	// +optional
	Step int32 `json:"step,omitempty"`

	// stepStartTime is when the current step began.
	// +optional
	StepStartTime *metav1.Time `json:"stepStartTime,omitempty"`
}

// PodCounts counts the running pods that carry an object or should carry it. Each pod is
// in one number at most.
type PodCounts struct {
	// current is the number of pods that carry the object in its current revision.
	// +required
	Current int32 `json:"current"`

	// outdated is the number of pods that carry an earlier revision.
	// +required
	Outdated int32 `json:"outdated"`

	// unknown is the number of pods that carry a revision that they do not name, because
	// Kubeflow's webhook injected them.
	// +required
	Unknown int32 `json:"unknown"`

	// missing is the number of pods that should carry the object and do not: they are older
	// than its last change.
	// +required
	Missing int32 `json:"missing"`

	// missed is the number of pods that should carry the object and do not, although they
	// are younger, and the webhook has not decided about them: it was not called, as in an
	// outage.
	// +optional
	Missed int32 `json:"missed,omitempty"`

	// surplus is the number of pods that carry the object but should no longer.
	// +required
	Surplus int32 `json:"surplus"`

	// exempt is the number of pods that do not carry the object because they are exempt.
	// +optional
	Exempt int32 `json:"exempt,omitempty"`
}
