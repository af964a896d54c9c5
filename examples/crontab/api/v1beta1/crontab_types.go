// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CronTab runs an image again and again. This version is the hub of conversion.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=crontabs,singular=crontab,shortName=ct
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Minute",type=string,JSONPath=`.spec.schedule.minute`
// +kubebuilder:printcolumn:name="Hour",type=string,JSONPath=`.spec.schedule.hour`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronTabSpec   `json:"spec"`
	Status CronTabStatus `json:"status,omitzero"`
}

// CronTabSpec says what to run, and when. What the fields must be is checked by the
// webhooks.
type CronTabSpec struct {
	// Schedule is when to run. Required.
	// +optional
	Schedule Schedule `json:"schedule,omitzero"`
	// Image to run. Its repository does not change. Defaults to my-awesome-cron-image.
	// +optional
	Image string `json:"image,omitempty"`
	// Replicas is how many run at one time, from 1 to 10. Defaults to 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// Schedule is a time that comes again: each field a number, or *, or either with a step
// such as */5.
type Schedule struct {
	// +optional
	Minute string `json:"minute,omitempty"`
	// +optional
	Hour string `json:"hour,omitempty"`
	// +optional
	DayOfMonth string `json:"dayOfMonth,omitempty"`
	// +optional
	Month string `json:"month,omitempty"`
	// +optional
	DayOfWeek string `json:"dayOfWeek,omitempty"`
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
