// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CronTab runs an image again and again. This version is the oldest one, to be served no
// more once nobody asks for it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=crontabs,singular=crontab,shortName=ct
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Spec",type=string,JSONPath=`.spec.cronSpec`
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronTabSpec   `json:"spec"`
	Status CronTabStatus `json:"status,omitzero"`
}

// CronTabSpec says what to run, and when. What the fields must be is checked by the
// webhooks.
type CronTabSpec struct {
	// CronSpec is when to run: minute, hour, day of month, month and day of week, each
	// a number, or *, or either with a step such as */5. Required.
	// +optional
	CronSpec string `json:"cronSpec,omitempty"`
	// Image to run. Its repository does not change. Defaults to my-awesome-cron-image.
	// +optional
	Image string `json:"image,omitempty"`
}

// CronTabStatus is what became of it.
type CronTabStatus struct {
	// CronJob is the name of the CronJob that runs the image.
	// +optional
	CronJob string `json:"cronJob,omitempty"`
}

// CronTabList is a list of CronTabs.
//
// +kubebuilder:object:root=true
type CronTabList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronTab `json:"items"`
}
