// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds ClusterPodDefault of the API group sallyport.io: what to
// add to the pods of many namespaces that a label selector picks.
//
// It has the fields of a PodDefault, and they mean the same; see package
// github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=sallyport.io
package v1alpha1
