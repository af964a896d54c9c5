// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names under which the API server serves PodDefaultIndexes, and the one name that
// they have in each namespace.
const (
	PodDefaultIndexKind     = "PodDefaultIndex"
	PodDefaultIndexResource = "poddefaultindexes" // plural, as in RBAC rules and URLs
	PodDefaultIndexName     = "poddefaults"
)

// PodDefaultIndex says which pods of its namespace are to be injected, in a form that a
// ValidatingAdmissionPolicy can read at little more cost if there are many PodDefaults.
// Sallyport writes it; it is not meant to be edited.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=poddefaultindexes,singular=poddefaultindex,scope=Namespaced
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.spec.objects`
// +kubebuilder:printcolumn:name="Omitted",type=integer,JSONPath=`.spec.omitted`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodDefaultIndex struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is empty if there is nothing to inject in the namespace. It is written as a
	// whole.
	// +optional
	// +structType=atomic
	Spec PodDefaultIndexSpec `json:"spec,omitempty"`
}

// PodDefaultIndexSpec files each object that injects: PodDefaults by their name,
// ClusterPodDefaults as cluster/NAME, as the annotation of pods lists them.
type PodDefaultIndexSpec struct {
	// Objects is how many are filed.
	// +optional
	Objects int32 `json:"objects,omitempty"`

	// Omitted is how many are not, because there is no room: for them the policy does
	// not stand in.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`

	// Pages file objects by a label that a pod must have to be selected, in the order of
	// the label's key.
	// +optional
	Pages []PodDefaultIndexPage `json:"pages,omitempty"`

	// Rest are the objects that no label can file, because pods without any may be
	// selected; each as in a page.
	// +optional
	Rest []string `json:"rest,omitempty"`
}

// PodDefaultIndexPage is a part of an index. It is text and not a tree, and short,
// because kube-apiserver (1.37) encodes and decodes the whole parameter of a policy for
// each request.
type PodDefaultIndexPage struct {
	// From is the first key in the page.
	From string `json:"from"`

	// Prefix is what all keys in the page begin with.
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// Terms are labels with the objects that are filed under them, each as
	// ";key=value:objects", or ";key:objects" if any value will do; the prefix of the key
	// is left out. Objects are separated by commas. Each is its name and, separated by
	// spaces, what else a pod must meet: "=key|value|value" for In, "!key|value|value" for
	// NotIn, "+key" for Exists and "-key" for DoesNotExist. The name is "@N" if it is the key
	// without its first N characters.
	Terms string `json:"terms"`
}

// PodDefaultIndexList is what a list request answers.
//
// +kubebuilder:object:root=true
type PodDefaultIndexList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodDefaultIndex `json:"items"`
}
