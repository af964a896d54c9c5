// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodDefault says what to add to each pod of its namespace that its selector
// picks, when the pod is created. Pods that already run do not change.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=poddefaults,singular=poddefault,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.desc`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodDefault struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to add and to which pods. The schema lets an object without
	// spec pass, because such objects exist; its selector is the empty one.
	// +optional
	Spec PodDefaultSpec `json:"spec,omitempty"`

	// Status is written by Sallyport, and only through the status subresource.
	// +optional
	Status PodDefaultStatus `json:"status,omitempty"`
}

// PodDefaultSpec is what to add and to which pods. "Containers" are the pod's
// own spec.containers, before sidecars join them; init containers and injected
// sidecars receive nothing but what they carry themselves.
type PodDefaultSpec struct {
	// Selector picks pods of the same namespace by their labels as they arrive,
	// with matchLabels and matchExpressions. The empty selector picks every pod.
	// An object whose selector cannot be parsed picks none.
	// Kubeflow's forms offer a PodDefault only by the first key of matchLabels,
	// and set that label to "true".
	Selector metav1.LabelSelector `json:"selector"`

	// Desc is a line for people, which forms show instead of the name.
	// +optional
	Desc string `json:"desc,omitempty"`

	// Env goes to every container, after the variables that are there.
	// Merge key: name. Conflict: another value or source under that name; an
	// absent fieldRef.apiVersion equals v1, an empty value only an empty value.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// EnvFrom goes to every container, after the sources that are there.
	// Merge key: prefix, configMapRef.name and secretRef.name together.
	// Conflict: a different "optional" of the same source.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Volumes go to the pod.
	// Merge key: name. Conflict: another kind of source under that name, or a
	// field of the source that differs.
	// +optional
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// VolumeMounts go to every container. One volume may be mounted at several
	// paths. The volume may come from this object, another one, or the pod.
	// Merge key: mountPath. Conflict: another volume, subPath, subPathExpr,
	// readOnly or mountPropagation at that path.
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// Annotations go to the pod.
	// Merge key: the key. Conflict: another value.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels go to the pod. An injected label does not take back or prevent the
	// choice of a PodDefault that already matched.
	// Merge key: the key. Conflict: another value.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Tolerations go to the pod.
	// Merge key: key, operator (empty is Equal), value and effect together.
	// tolerationSeconds is no part of it: where nothing else differs, the value
	// of the PodDefault replaces that of the pod.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// InitContainers go to spec.initContainers, after those that are there; with
	// restartPolicy Always they are native sidecars.
	// Merge key: name, across containers and initContainers. Conflict: a field
	// that differs, or the name taken in the other list.
	// +optional
	InitContainers []corev1.Container `json:"initContainers,omitempty"`

	// Sidecars go to spec.containers, after those that are there.
	// Merge key: name, across containers and initContainers. Conflict: a field
	// that differs, or the name taken in the other list.
	// +optional
	Sidecars []corev1.Container `json:"sidecars,omitempty"`

	// ImagePullSecrets go to the pod.
	// Merge key: name. They cannot conflict.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// ServiceAccountName replaces the pod's service account, whatever it was.
	// It cannot conflict: of several PodDefaults the last by name wins.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// AutomountServiceAccountToken replaces the pod's value. With false, the
	// token volume and mounts that the API server has already added go away too.
	// It cannot conflict: of several PodDefaults the last by name wins.
	// +optional
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty"`

	// Command is set on every container that has none, except the service mesh
	// proxy. It cannot conflict: of several PodDefaults the first by name wins.
	// +optional
	Command []string `json:"command,omitempty"`

	// Args are set on every container that has none, except the service mesh
	// proxy, whether or not the container has a command.
	// They cannot conflict: of several PodDefaults the first by name wins.
	// +optional
	Args []string `json:"args,omitempty"`
}

// PodDefaultStatus is what Sallyport found out about the object. It holds no
// counts: every write of it would change the resourceVersion, which pods carry.
type PodDefaultStatus struct {
	// ObservedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions say whether the object can work.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodDefaultList is what a list request answers.
//
// +kubebuilder:object:root=true
type PodDefaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodDefault `json:"items"`
}
