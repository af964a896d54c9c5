// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds PodDefault of the API group kubeflow.org: what to add
// to the pods of a namespace that a label selector picks.
//
// Group, version, kind, resource, JSON names and schema are those of Kubeflow's
// PodDefault, so that existing objects and existing clients keep working. The
// schema is the one of Kubernetes 1.37 core/v1. v1alpha1 is the only version
// there is: new fields are optional and stand beside the old ones, there is no
// conversion.
//
// Field comments state the contract of injection: the merge key that decides
// whether a pod already holds an item, and what happens when it holds another
// one under the same key (a conflict). A conflict denies the pod, and then
// nothing of any PodDefault is applied to it, unless the object's conflictPolicy
// says otherwise. PodDefaults are applied in the order of their priorities, then
// of their names.
//
// "Already there" means: every field that the PodDefault sets has the same
// value in the pod. Fields that only the pod has (defaults of the API server,
// additions of other webhooks) do not count, except where a field comment says
// that items must be equal.
//
// +kubebuilder:object:generate=true
// +groupName=kubeflow.org
package v1alpha1
