// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// ClusterPodDefault adds fields to pods when they are created: to all pods that match its
// selector in the namespaces that match its namespaceSelector. It is applied before the
// PodDefaults of the pod's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpoddefaults,singular=clusterpoddefault,scope=Cluster,shortName=cpd,categories=sallyport
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.conflictPolicy`
// +kubebuilder:selectablefield:JSONPath=`.spec.exclusiveGroup`
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.desc`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.conflictPolicy`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Selector",type=string,priority=1,JSONPath=`.spec.selector.matchLabels`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflicting",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicting")].status`
// +kubebuilder:printcolumn:name="Current",type=integer,priority=1,JSONPath=`.status.pods.current`
// +kubebuilder:printcolumn:name="Outdated",type=integer,priority=1,JSONPath=`.status.pods.outdated`
// +kubebuilder:printcolumn:name="Missing",type=integer,priority=1,JSONPath=`.status.pods.missing`
// +kubebuilder:printcolumn:name="Missed",type=integer,priority=1,JSONPath=`.status.pods.missed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPodDefault struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every Kubernetes object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what to add, and to which pods in which namespaces.
	// +required
	Spec ClusterPodDefaultSpec `json:"spec"`

	// status is written by Sallyport, and only through the status subresource.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status kubeflowv1alpha1.PodDefaultStatus `json:"status,omitempty"`
}

// ClusterPodDefaultSpec is the spec of a PodDefault that applies to many namespaces.
type ClusterPodDefaultSpec struct {
	kubeflowv1alpha1.PodDefaultSpec `json:",inline"`

	// namespaceSelector selects namespaces by their labels. If it is absent or empty, it
	// selects every namespace for whose pods Sallyport is called.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// allowExclude permits a pod to opt out with the annotation that excludes it from the
	// PodDefaults of its namespace.
	// +optional
	AllowExclude bool `json:"allowExclude,omitempty"`
}

// ClusterPodDefaultList is a list of ClusterPodDefaults.
//
// +kubebuilder:object:root=true
type ClusterPodDefaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPodDefault `json:"items"`
}
