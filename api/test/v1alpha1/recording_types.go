// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

// RecordedReview is an admission review with its decision, one line of a recording.
type RecordedReview struct {
	metav1.TypeMeta `json:",inline"`
	Time            metav1.MicroTime `json:"time"`
	// Webhook is the name of the webhook that was asked.
	Webhook string `json:"webhook"`
	// Error is set if the webhook failed; then there is no response.
	Error  string                      `json:"error,omitempty"`
	Review admissionv1.AdmissionReview `json:"review"`
}
