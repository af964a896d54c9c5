// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodDefaultRevision records what a PodDefault of its namespace, its owner, added to pods at
// one time. Sallyport writes it, and ignores one whose content is not what its name says.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=poddefaultrevisions,singular=poddefaultrevision
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.metadata.ownerReferences[0].name`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.revision`
// +kubebuilder:printcolumn:name="Stable",type=string,JSONPath=`.metadata.labels.sallyport\.io/stable`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.rollout.step`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodDefaultRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every Kubernetes object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	RevisionContent `json:",inline"`
}

// ClusterPodDefaultRevision is a PodDefaultRevision of a ClusterPodDefault.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpoddefaultrevisions,singular=clusterpoddefaultrevision,scope=Cluster
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.metadata.ownerReferences[0].name`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.revision`
// +kubebuilder:printcolumn:name="Stable",type=string,JSONPath=`.metadata.labels.sallyport\.io/stable`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.rollout.step`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPodDefaultRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every Kubernetes object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	RevisionContent `json:",inline"`
}

// RevisionContent is what both kinds of revisions have.
type RevisionContent struct {
	// revision is the number of the revision. The latest one has the highest.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Revision int64 `json:"revision"`

	// spec is the spec of the owner without desc, rollout and revisionHistoryLimit. Its hash
	// is the name of the revision.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec"`

	// rollout is the state of the rollout of another revision over this one, the stable one.
	// +optional
	Rollout *RevisionRollout `json:"rollout,omitempty"`
}

// RevisionRollout is the state of the rollout of a revision.
type RevisionRollout struct {
	// revision is the name of the revision that is rolled out.
	// +required
	Revision string `json:"revision"`

	// step is the current step, counted from 1. 0: no pod gets the revision.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Step int32 `json:"step,omitempty"`

	// stepStartTime is when the current step began.
	// +optional
	StepStartTime *metav1.Time `json:"stepStartTime,omitempty"`

	// refused says that a replica refuses too many workloads because of the revision. No
	// further step is entered then.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Refused string `json:"refused,omitempty"`
}

// PodDefaultRevisionList is a list of PodDefaultRevisions.
//
// +kubebuilder:object:root=true
type PodDefaultRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodDefaultRevision `json:"items"`
}

// ClusterPodDefaultRevisionList is a list of ClusterPodDefaultRevisions.
//
// +kubebuilder:object:root=true
type ClusterPodDefaultRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPodDefaultRevision `json:"items"`
}
