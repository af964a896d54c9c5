// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains ClusterPodDefault of the API group sallyport.io, which adds
// fields to the pods that a label selector matches in many namespaces.
//
// It has the fields of a PodDefault with the same meaning; see package
// github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=sallyport.io
package v1alpha1
