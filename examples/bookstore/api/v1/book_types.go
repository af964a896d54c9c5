// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Book is a title that the store sells.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=books,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.copies,statuspath=.status.copies
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
	// Authors in the order of the title page.
	// +optional
	Authors []string `json:"authors,omitempty"`
	// Price of a copy. Without a price the book is not for sale.
	// +optional
	Price *Price `json:"price,omitempty"`
	// Copies in stock, 0 to 1000. Default 1.
	// +optional
	Copies *int32 `json:"copies,omitempty"`
}

// Price is an amount of money.
type Price struct {
	// Cents are hundredths of the currency.
	Cents int64 `json:"cents"`
	// Currency is an ISO 4217 code. Default EUR.
	// +optional
	Currency string `json:"currency,omitempty"`
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
