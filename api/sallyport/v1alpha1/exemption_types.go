// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of an Exemption.
const (
	// ConditionReady is False while the exemption cannot take effect. One that has ended has
	// done its work, and is ready.
	ConditionReady = "Ready"
	// ConditionStalled is True if what Ready says does not change by itself.
	ConditionStalled = "Stalled"
	// ConditionInForce is True while new pods are exempt.
	ConditionInForce = "InForce"
)

// Exemption exempts pods of its namespace from PodDefaults and ClusterPodDefaults until a
// time. Who creates one, or makes one wider, needs the verb exempt on each object that it
// names.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=exemptions,singular=exemption,shortName=pde,categories=sallyport
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.podDefaults`
// +kubebuilder:printcolumn:name="Workloads",type=string,JSONPath=`.spec.workloads`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`
// +kubebuilder:printcolumn:name="In Force",type=string,JSONPath=`.status.conditions[?(@.type=="InForce")].status`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Exemption struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every Kubernetes object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which pods are exempt, from what, and until when.
	// +required
	Spec ExemptionSpec `json:"spec"`

	// status is written by Sallyport, and only through the status subresource.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status ExemptionStatus `json:"status,omitempty"`
}

// ExemptionSpec defines which pods are exempt, from what, and until when.
type ExemptionSpec struct {
	// until is when the exemption ends, by the server's clock. When it is written, it may be
	// no further away than maxExemption in the server's configuration.
	// +required
	Until metav1.Time `json:"until"`

	// podDefaults are the objects from which pods are exempt: names of PodDefaults of the
	// namespace, and cluster/NAME for ClusterPodDefaults.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=261
	// +kubebuilder:validation:items:Pattern=`^(cluster/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	PodDefaults []string `json:"podDefaults"`

	// workloads are those whose pods are exempt: KIND/NAME of the controller of pods, or of
	// the Deployment, CronJob or Notebook above it, such as Deployment/web. A * alone is every
	// workload of the namespace.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^(\*|[A-Z][A-Za-z0-9]{0,62}/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`
	// +kubebuilder:validation:XValidation:rule="!('*' in self) || size(self) == 1",message="* is every workload and must be alone"
	Workloads []string `json:"workloads"`

	// reason says why, for who reads it later: printable text in one line.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[\pL\pM\pN\pP\pS]([\pL\pM\pN\pP\pS ]*[\pL\pM\pN\pP\pS])?$`
	Reason string `json:"reason"`
}

// ExemptionStatus is the observed state of an Exemption.
type ExemptionStatus struct {
	// observedGeneration is the metadata.generation that the status was computed for.
	// -1: for none yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the object: Ready, Stalled and InForce.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// endTime is when the exemption ends or has ended. It is absent while the exemption
	// cannot take effect.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// pods is the number of running pods that do not carry an object because of the
	// exemption. It is absent if pods are not counted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods *int32 `json:"pods,omitempty"`
}

// ExemptionList is a list of Exemptions.
//
// +kubebuilder:object:root=true
type ExemptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Exemption `json:"items"`
}
