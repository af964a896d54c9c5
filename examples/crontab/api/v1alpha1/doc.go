// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds CronTab of the API group stable.example.com, the example of the
// Kubernetes documentation on custom resources.
//
// +kubebuilder:object:generate=true
// +groupName=stable.example.com
package v1alpha1
