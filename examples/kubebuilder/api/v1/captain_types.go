// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CaptainSpec says who a captain is.
type CaptainSpec struct {
	// Ship is what the captain commands.
	Ship string `json:"ship"`
	// Rank is from 1 to 5. Default 1.
	// +optional
	Rank *int64 `json:"rank,omitempty"`
	// Crew are the captain's people.
	// +optional
	Crew []string `json:"crew,omitempty"`
}

// Captain commands a ship.
// +kubebuilder:object:root=true
type Captain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CaptainSpec `json:"spec"`
}

// CaptainList is a list of captains.
// +kubebuilder:object:root=true
type CaptainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Captain `json:"items"`
}
