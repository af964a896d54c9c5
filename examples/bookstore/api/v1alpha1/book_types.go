// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Book is a title that the store sells.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=books,scope=Namespaced
// +kubebuilder:subresource:status
type Book struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BookSpec   `json:"spec"`
	Status BookStatus `json:"status,omitzero"`
}

// BookSpec is the desired state. The webhooks set the defaults and check the fields.
type BookSpec struct {
	// Title of the book. Required.
	// +optional
	Title string `json:"title,omitempty"`
	// ISBN of 13 digits; hyphens and spaces are removed. Required, unique in the cluster, immutable.
	// +optional
	ISBN string `json:"isbn,omitempty"`
	// Author is the first one.
	// +optional
	Author string `json:"author,omitempty"`
}

// BookStatus is the observed state.
type BookStatus struct {
	// Copies in stock.
	// +optional
	Copies int32 `json:"copies,omitempty"`
	// Conditions of the book: Unique is false if an older Book has the same ISBN.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BookList is a list of Books.
//
// +kubebuilder:object:root=true
type BookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Book `json:"items"`
}
