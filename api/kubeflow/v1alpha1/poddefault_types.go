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
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.conflictPolicy`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Selector",type=string,priority=1,JSONPath=`.spec.selector.matchLabels`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflicting",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicting")].status`
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

// PodDefaultSpec is what to add and to which pods. "Every container" means those
// that containerSelector picks: unless it says otherwise the pod's own
// spec.containers, before sidecars join them, while init containers and injected
// containers receive nothing but what they carry themselves.
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
	// Merge key: prefix, configMapRef.name or secretRef.name, and optional together.
	// They cannot conflict.
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

	// Priority orders PodDefaults: those with a lower one are applied first, those
	// with the same in the order of their names. Without it: 0.
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// ConflictPolicy says what a conflict of this object with the pod, or with
	// an object that was applied before, means. Deny (which it is if nothing is
	// said) refuses the pod; KeepPod leaves what is there; Override puts this
	// object's in its place; Skip applies nothing of this object.
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// Mode is Enforce, which it is if nothing is said, or Audit: nothing of this
	// object is applied, and a warning says what would come of it.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// ExclusiveGroup names alternatives, such as the kinds of GPUs: a pod is denied
	// that selects two objects of one group. They are not reported as conflicting with
	// each other, since a pod is not meant to have both. It has the form of a label's
	// value.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	ExclusiveGroup string `json:"exclusiveGroup,omitempty"`

	// Substitute replaces ${namespace} and ${pod.labels['key']} in env values, args
	// and subPaths of this object, and of the containers that it brings, by what the
	// pod has. A label that is missing or empty is a conflict. $(VAR) stays
	// Kubernetes' own, and so does what stands behind two dollar signs.
	// +optional
	Substitute bool `json:"substitute,omitempty"`

	// ContainerSelector picks the containers that get what goes to every
	// container.
	// +optional
	ContainerSelector *ContainerSelector `json:"containerSelector,omitempty"`

	// Positions say where the containers that this object brings are put, in the
	// list of containers or init containers. Without one a container comes last.
	// +optional
	Positions []ContainerPosition `json:"positions,omitempty"`

	// NodeSelector goes to the pod.
	// Merge key: the key. Conflict: another value.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Affinity goes to the pod. Required node terms narrow the pod's: each of
	// its terms gets the expressions too. Preferred terms and terms of pod affinity
	// and anti-affinity are added unless they are there. It cannot conflict.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints go to the pod.
	// Merge key: topologyKey and whenUnsatisfiable. Conflict: any other
	// difference.
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PodSecurityContext goes to the pod's securityContext field by field.
	// Conflict: another value of the same field. supplementalGroups and sysctls
	// are added to those that are there.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// ContainerSecurityContext goes to the securityContext of every container
	// field by field.
	// Conflict: another value of the same field. Capabilities are added to those
	// that are there; one that is added on one side and dropped on the other is a
	// conflict.
	// +optional
	ContainerSecurityContext *corev1.SecurityContext `json:"containerSecurityContext,omitempty"`

	// Resources go to every container, requests and limits one by one, where
	// the container has none of that name. They cannot conflict: what would make a
	// request larger than its limit is left out with a warning.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// PriorityClassName goes to the pod; the priority and the preemption policy
	// that the API server has computed without it go away.
	// Conflict: another class.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// RuntimeClassName goes to the pod.
	// Conflict: another class.
	// +optional
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`

	// Lifecycle goes to every container that may have one, each hook by itself;
	// of init containers these are native sidecars.
	// Conflict: another hook.
	// +optional
	Lifecycle *corev1.Lifecycle `json:"lifecycle,omitempty"`

	// HostAliases go to the pod.
	// Merge key: ip. Conflict: other hostnames.
	// +optional
	HostAliases []corev1.HostAlias `json:"hostAliases,omitempty"`

	// DNSConfig goes to the pod. Nameservers and searches are added to those that
	// are there; options have the merge key name, and conflict with another value.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// TerminationGracePeriodSeconds goes to the pod. Every pod has a value when it
	// arrives; the API server's default, 30, counts as none.
	// Conflict: another value.
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Ports go to every container.
	// Merge key: containerPort and protocol. Conflict: another name, hostPort or
	// hostIP.
	// +optional
	Ports []corev1.ContainerPort `json:"ports,omitempty"`

	// VolumeDevices go to every container. The volume may come from this object,
	// another one, or the pod.
	// Merge key: devicePath. Conflict: another volume at that path.
	// +optional
	VolumeDevices []corev1.VolumeDevice `json:"volumeDevices,omitempty"`
}

// ConflictPolicy is what a conflict means.
//
// +kubebuilder:validation:Enum=Deny;KeepPod;Override;Skip
type ConflictPolicy string

// The conflict policies. An empty one is Deny, except that a scalar which could not
// conflict before there were policies overwrites or gives way, as it always did.
const (
	ConflictDeny     ConflictPolicy = "Deny"
	ConflictKeepPod  ConflictPolicy = "KeepPod"
	ConflictOverride ConflictPolicy = "Override"
	ConflictSkip     ConflictPolicy = "Skip"
)

// Mode says whether an object is applied.
//
// +kubebuilder:validation:Enum=Enforce;Audit
type Mode string

// The modes. An empty one is Enforce.
const (
	ModeEnforce Mode = "Enforce"
	ModeAudit   Mode = "Audit"
)

// ContainerSelector picks containers by what they are and what they are called.
type ContainerSelector struct {
	// Types are the kinds of containers; without any: Container, or where names are
	// given every kind.
	// +optional
	Types []ContainerType `json:"types,omitempty"`

	// First picks one container alone: of those that would be picked, the first that
	// the pod itself has in spec.containers. Notebooks have theirs there.
	// +optional
	First bool `json:"first,omitempty"`

	// Names are those of the containers that are picked; without any: all of
	// these types, but no proxy of a service mesh. One that is named here is picked
	// even if it is such a proxy.
	// +optional
	Names []string `json:"names,omitempty"`

	// ExcludeNames are those of containers that are not picked.
	// +optional
	ExcludeNames []string `json:"excludeNames,omitempty"`
}

// ContainerType is a kind of container in a pod.
//
// +kubebuilder:validation:Enum=Container;InitContainer;Injected
type ContainerType string

// The kinds of containers. A container that a PodDefault brings is Injected,
// whichever list it goes to, and nothing else.
const (
	TypeContainer     ContainerType = "Container"     // of spec.containers
	TypeInitContainer ContainerType = "InitContainer" // of spec.initContainers, native sidecars too
	TypeInjected      ContainerType = "Injected"
)

// ContainerPosition says where a container is put. Containers that the pod came with
// are never put elsewhere.
type ContainerPosition struct {
	// Name is that of a container in sidecars or initContainers of the same
	// object.
	Name string `json:"name"`

	// Place is First, Last, Before or After.
	Place ContainerPlace `json:"place"`

	// Container is the name of the one, in the same list, that Before and After
	// refer to. If there is none of that name the place is Last, with a warning.
	// +optional
	Container string `json:"container,omitempty"`
}

// ContainerPlace is a place in a list of containers.
//
// +kubebuilder:validation:Enum=First;Last;Before;After
type ContainerPlace string

// The places.
const (
	PlaceFirst  ContainerPlace = "First"
	PlaceLast   ContainerPlace = "Last"
	PlaceBefore ContainerPlace = "Before"
	PlaceAfter  ContainerPlace = "After"
)

// The types of conditions in a status.
const (
	// ConditionAccepted is True if the object can work, and else False with every
	// mistake in its message.
	ConditionAccepted = "Accepted"
	// ConditionConflicting is True if there are pods that this object and another
	// one select, and for which they want different things; the message has the
	// names of the others.
	ConditionConflicting = "Conflicting"
	// ConditionUISelectable is True if Kubeflow's forms can offer the object: its
	// selector has matchLabels whose first and only key has the value "true".
	ConditionUISelectable = "UISelectable"
)

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
