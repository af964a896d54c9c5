// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains PodDefault of the API group kubeflow.org, which adds fields to
// the pods that a label selector matches in a namespace.
//
// Group, version, kind, resource, JSON names and schema are those of Kubeflow's PodDefault,
// so that existing objects and existing clients keep working. The schema is that of
// Kubernetes 1.37 core/v1. v1alpha1 is the only version: new fields are optional and added
// beside the existing ones, without conversion.
//
// Field comments state the contract of injection: the merge key that decides whether a pod
// already has an item, and what counts as a conflict with an item of the same key. A
// conflict rejects the pod, and no PodDefault is applied to it, unless the object's
// conflictPolicy says otherwise. PodDefaults are applied in the order of their priorities,
// then of their names.
//
// A pod already has an item if every field that the PodDefault sets has the same value in
// the pod. Fields that only the pod sets (defaults of the API server, additions of other
// webhooks) are ignored, except where a field comment requires equality.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1alpha1
