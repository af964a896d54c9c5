// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodDefault adds fields to the pods of its namespace that match its selector, when they
// are created. It does not change existing pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=poddefaults,singular=poddefault,scope=Namespaced,shortName=pd,categories=sallyport
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.conflictPolicy`
// +kubebuilder:selectablefield:JSONPath=`.spec.exclusiveGroup`
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.desc`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.conflictPolicy`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Selector",type=string,priority=1,JSONPath=`.spec.selector.matchLabels`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflicting",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicting")].status`
// +kubebuilder:printcolumn:name="Current",type=integer,priority=1,JSONPath=`.status.pods.current`
// +kubebuilder:printcolumn:name="Outdated",type=integer,priority=1,JSONPath=`.status.pods.outdated`
// +kubebuilder:printcolumn:name="Missing",type=integer,priority=1,JSONPath=`.status.pods.missing`
// +kubebuilder:printcolumn:name="Missed",type=integer,priority=1,JSONPath=`.status.pods.missed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodDefault struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every Kubernetes object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what to add, and to which pods. The schema does not require it, because
	// objects without spec exist; they have the empty selector.
	// +optional
	Spec PodDefaultSpec `json:"spec,omitempty"`

	// status is written by Sallyport, and only through the status subresource. (+sallyport)
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
	Status PodDefaultStatus `json:"status,omitempty"`
}

// PodDefaultSpec defines what to add, and to which pods. "Every container" means the
// containers that containerSelector selects: by default the pod's own spec.containers,
// without injected sidecars. Init containers and injected containers then have only the
// fields that they define themselves.
//
// +kubebuilder:validation:XValidation:rule="!has(self.volumesFromSecretSelector) || has(self.secretsMountPath) && size(self.secretsMountPath) > 0",message="volumesFromSecretSelector needs it",fieldPath=".secretsMountPath",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="has(self.volumesFromSecretSelector) || !has(self.secretsMountPath) || size(self.secretsMountPath) == 0",message="may be set beside volumesFromSecretSelector alone",fieldPath=".secretsMountPath"
// +kubebuilder:validation:XValidation:rule="!has(self.positions) || self.positions.all(p, has(self.sidecars) && self.sidecars.exists(c, c.name == p.name) || has(self.initContainers) && self.initContainers.exists(c, c.name == p.name))",message="each name must be that of a container in sidecars or initContainers",fieldPath=".positions"
// +kubebuilder:validation:XValidation:rule="!has(self.sidecars) || !has(self.initContainers) || !self.sidecars.exists(c, self.initContainers.exists(i, i.name == c.name))",message="a name stands in initContainers too; choose another for one of them",fieldPath=".sidecars"
type PodDefaultSpec struct {
	// selector selects pods of the same namespace by the labels they have on arrival, with
	// matchLabels and matchExpressions. An empty selector selects every pod; an invalid one
	// selects none. Kubeflow's forms offer a PodDefault by the first key of matchLabels
	// only, and set that label to "true".
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	Selector metav1.LabelSelector `json:"selector"`

	// desc is a one-line description, which forms show instead of the name.
	// +optional
	Desc string `json:"desc,omitempty"`

	// env is appended to the variables of every container. Merge key: name. Conflict: a
	// different value or source for the name; an absent fieldRef.apiVersion equals v1, an
	// empty value only an empty value.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom is appended to the sources of every container. Merge key: prefix,
	// configMapRef.name or secretRef.name, and optional. It cannot conflict.
	// +optional
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// volumes are added to the pod. Merge key: name. Conflict: a different type of source
	// for the name, or a field of the source that differs.
	// +optional
	// +listType=map
	// +listMapKey=name
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// volumeMounts are added to every container. A volume may be mounted at several paths,
	// and may be defined by this object, another PodDefault, or the pod. Merge key:
	// mountPath. Conflict: a different volume, subPath, subPathExpr, readOnly or
	// mountPropagation at that path.
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// annotations are added to the pod. Merge key: the key. Conflict: a different value.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue())",message="each key must be a name part of at most 63 characters, optionally with a DNS subdomain and a slash before it"
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.lowerAscii().startsWith('poddefault.admission.kubeflow.org/poddefault-') || k.lowerAscii().startsWith('poddefault.admission.kubeflow.org/skipped-') || k.lowerAscii().startsWith('sallyport.io/clusterpoddefault-') || k.lowerAscii().startsWith('sallyport.io/poddefaults') || k.lowerAscii().startsWith('kubernetes.io/limit-ranger'))",message="keys in which other components record what they did to the pod are reserved",reason=FieldValueForbidden
	Annotations map[string]string `json:"annotations,omitempty"`

	// labels are added to the pod. An added label neither undoes nor prevents the selection
	// of a PodDefault that already matched. Merge key: the key. Conflict: a different
	// value.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="each key must be a name part of at most 63 characters, optionally with a DNS subdomain and a slash before it"
	Labels map[string]string `json:"labels,omitempty"`

	// tolerations are added to the pod. Merge key: key, operator (empty is Equal), value
	// and effect. tolerationSeconds is not part of the key: if only it differs, the value
	// of the PodDefault replaces that of the pod.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// initContainers are appended to spec.initContainers; with restartPolicy Always they
	// are native sidecars. Merge key: name, across containers and initContainers. Conflict:
	// a field that differs, or a container of that name in the other list.
	// +optional
	// +listType=map
	// +listMapKey=name
	InitContainers []corev1.Container `json:"initContainers,omitempty"`

	// sidecars are appended to spec.containers. Merge key: name, across containers and
	// initContainers. Conflict: a field that differs, or a container of that name in the
	// other list.
	// +optional
	// +listType=map
	// +listMapKey=name
	Sidecars []corev1.Container `json:"sidecars,omitempty"`

	// imagePullSecrets are added to the pod. Merge key: name. They cannot conflict.
	// +optional
	// +listType=map
	// +listMapKey=name
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// serviceAccountName replaces the pod's service account. With the conflictPolicy
	// Kubeflow it cannot conflict: of several PodDefaults, the last one applied wins.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// automountServiceAccountToken replaces the pod's value. If false, the token volume and
	// mounts that the API server has already added are removed. With the conflictPolicy
	// Kubeflow it cannot conflict: of several PodDefaults, the last one applied wins.
	// +optional
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty"`

	// command is set on every container without a command, except the service mesh proxy.
	// With the conflictPolicy Kubeflow it cannot conflict: of several PodDefaults, the
	// first one applied wins.
	// +optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`

	// args are set on every container without args, except the service mesh proxy, whether
	// or not the container has a command. With the conflictPolicy Kubeflow they cannot
	// conflict: of several PodDefaults, the first one applied wins.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`

	// priority orders PodDefaults: lower priorities are applied first, equal priorities in
	// the order of names. Default 0. (+sallyport)
	// +optional
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`

	// conflictPolicy defines what happens if this object conflicts with the pod or with a
	// PodDefault applied before it. Deny rejects the pod; KeepPod keeps the existing value;
	// Override replaces it with the value of this object; Skip applies nothing of this
	// object. Kubeflow (the default) is Deny for all fields but four, which behave as in
	// Kubeflow's webhook: serviceAccountName and automountServiceAccountToken override,
	// command and args give way. (+sallyport)
	// +optional
	// +kubebuilder:default=Kubeflow
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// mode is Enforce (the default) or Audit. In Audit mode nothing of this object is
	// applied, and a warning says what would have been. (+sallyport)
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// exclusiveGroup names a group of alternatives, such as types of GPUs: a pod that
	// matches two objects of the same group is rejected. Objects of a group are not
	// reported as conflicting with each other, since no pod is meant to have both. The
	// value has the format of a label value. (+sallyport)
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	ExclusiveGroup string `json:"exclusiveGroup,omitempty"`

	// substitute replaces ${namespace} and ${pod.labels['key']} in env values, args and
	// subPaths of this object and of the containers it adds with the values of the pod. A
	// missing or empty label is a conflict. $(VAR) is left to Kubernetes, and so is an
	// expression escaped with $$. (+sallyport)
	// +optional
	Substitute bool `json:"substitute,omitempty"`

	// containerSelector selects the containers that the fields for every container apply
	// to. (+sallyport)
	// +optional
	ContainerSelector *ContainerSelector `json:"containerSelector,omitempty"`

	// positions define where the containers of this object are inserted in the list of
	// containers or init containers. A container without a position is appended.
	// (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Positions []ContainerPosition `json:"positions,omitempty"`

	// nodeSelector is added to the pod. Merge key: the key. Conflict: a different value.
	// (+sallyport)
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="each key must be a name part of at most 63 characters, optionally with a DNS subdomain and a slash before it"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity is added to the pod. Required node terms narrow those of the pod: their
	// expressions are added to each of its terms. Preferred terms, and terms of pod
	// affinity and anti-affinity, are added unless the pod already has them. It cannot
	// conflict. (+sallyport)
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints are added to the pod. Merge key: topologyKey and
	// whenUnsatisfiable. Conflict: any other field that differs. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// podSecurityContext is merged into the pod's securityContext field by field. Conflict:
	// a different value of a field. supplementalGroups and sysctls are added to those of
	// the pod. (+sallyport)
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// containerSecurityContext is merged into the securityContext of every container field
	// by field. Conflict: a different value of a field. Capabilities are added to those of
	// the container; a capability that one side adds and the other drops is a conflict.
	// (+sallyport)
	// +optional
	ContainerSecurityContext *corev1.SecurityContext `json:"containerSecurityContext,omitempty"`

	// resources are added to every container: each request and limit whose resource the
	// container does not specify. They cannot conflict: a value that would make a request
	// exceed its limit is omitted with a warning. (+sallyport)
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// priorityClassName is set on the pod; the priority and preemption policy that the API
	// server computed without it are removed. Conflict: a different class. (+sallyport)
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// runtimeClassName is set on the pod. Conflict: a different class. (+sallyport)
	// +optional
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`

	// lifecycle hooks are set on every container that may have them, each on its own; of
	// init containers, only native sidecars may. Conflict: a different hook. (+sallyport)
	// +optional
	Lifecycle *corev1.Lifecycle `json:"lifecycle,omitempty"`

	// hostAliases are added to the pod. Merge key: ip. Conflict: different hostnames.
	// (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=ip
	HostAliases []corev1.HostAlias `json:"hostAliases,omitempty"`

	// dnsConfig is merged into that of the pod. Nameservers and searches are added to those
	// of the pod. Merge key of options: name. Conflict: a different value of an option.
	// (+sallyport)
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// terminationGracePeriodSeconds is set on the pod. Every pod has a value on arrival;
	// the API server's default, 30, counts as unset. Conflict: a different value.
	// (+sallyport)
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// ports are added to every container. Merge key: containerPort and protocol. Conflict:
	// a different name, hostPort or hostIP. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=containerPort
	// +listMapKey=protocol
	Ports []corev1.ContainerPort `json:"ports,omitempty"`

	// volumeDevices are added to every container. The volume may be defined by this object,
	// another PodDefault, or the pod. Merge key: devicePath. Conflict: a different volume
	// at that path. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=devicePath
	VolumeDevices []corev1.VolumeDevice `json:"volumeDevices,omitempty"`

	// resourceClaims are added to the pod (dynamic resource allocation). Containers use a
	// claim if resources.claims names it. Merge key: name. Conflict: a different
	// resourceClaimName or resourceClaimTemplateName. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=name
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`

	// schedulingGates are added to the pod, which no scheduler considers until a controller
	// has removed all of them. Merge key: name. They cannot conflict. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=name
	SchedulingGates []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`

	// readinessGates are added to the pod, which is ready only if all these conditions are
	// true. Merge key: conditionType. They cannot conflict. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []corev1.PodReadinessGate `json:"readinessGates,omitempty"`

	// schedulerName is set on the pod. Every pod has a value on arrival; the API server's
	// default, default-scheduler, counts as unset. Conflict: a different scheduler.
	// (+sallyport)
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// hostUsers is set on the pod. If false, the pod has a user namespace of its own.
	// Conflict: a different value. (+sallyport)
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// shareProcessNamespace is set on the pod. Conflict: a different value. (+sallyport)
	// +optional
	ShareProcessNamespace *bool `json:"shareProcessNamespace,omitempty"`

	// enableServiceLinks is set on the pod. Every pod has a value on arrival; the API
	// server's default, true, counts as unset. Conflict: a different value. (+sallyport)
	// +optional
	EnableServiceLinks *bool `json:"enableServiceLinks,omitempty"`

	// dnsPolicy is set on the pod. Every pod has a value on arrival; the API server's
	// default, ClusterFirst, counts as unset. None needs a name server, of dnsConfig or of
	// the pod. Conflict: a different policy. (+sallyport)
	// +optional
	DNSPolicy corev1.DNSPolicy `json:"dnsPolicy,omitempty"`

	// activeDeadlineSeconds is set on the pod, which is stopped after that time. Conflict:
	// a different value. (+sallyport)
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// terminationMessagePolicy is set on every container. Every container has a value on
	// arrival; the API server's default, File, counts as unset. Conflict: a different
	// policy. (+sallyport)
	// +optional
	TerminationMessagePolicy corev1.TerminationMessagePolicy `json:"terminationMessagePolicy,omitempty"`

	// envFromSecretSelector selects Secrets of the pod's namespace by their labels, when
	// the pod is created: each becomes an optional envFrom entry of every container, by
	// name and after those of envFrom. The server must be configured to know Secrets
	// (dataConnections); it never reads their data. (+sallyport)
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	EnvFromSecretSelector *metav1.LabelSelector `json:"envFromSecretSelector,omitempty"`

	// volumesFromSecretSelector is like envFromSecretSelector: each Secret becomes an
	// optional volume, which every container mounts read-only at secretsMountPath/NAME.
	// (+sallyport)
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	VolumesFromSecretSelector *metav1.LabelSelector `json:"volumesFromSecretSelector,omitempty"`

	// secretsMountPath is the directory below which the Secrets of
	// volumesFromSecretSelector are mounted. (+sallyport)
	// +optional
	SecretsMountPath string `json:"secretsMountPath,omitempty"`

	// revisionHistoryLimit is the number of earlier revisions of this object to keep.
	// Default 5. With 0, only revisions that a rollout needs are kept. (+sallyport)
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=5
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// rollout stages changes of this object: new pods get the new revision step by step,
	// and all others the revision before. If absent, a change applies to all new pods. The
	// first revision of an object is never staged. (+sallyport)
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Rollout defines how a new revision of an object reaches new pods. It is not part of the
// revision, so changing it starts no rollout.
//
// +kubebuilder:validation:XValidation:rule="!has(self.promotion) || !has(self.promotion.step) || self.promotion.step <= size(self.steps)",message="must be one of the steps; without it, the rollout is completed",fieldPath=".promotion.step"
// +kubebuilder:validation:XValidation:rule="!has(self.promotion) || !has(self.abortedRevision) || self.promotion.revision != self.abortedRevision",message="is abortedRevision, too: remove one of them",fieldPath=".promotion.revision"
type Rollout struct {
	// steps are entered one after the other. A pod gets the new revision if the current
	// step or an earlier one includes it.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	Steps []RolloutStep `json:"steps"`

	// by is Workload (the default) or Pod. All pods of a workload get the same revision in
	// a step, unless it is Pod.
	// +optional
	// +kubebuilder:default=Workload
	By RolloutUnit `json:"by,omitempty"`

	// maxFailedPercent is the share of pods with the new revision, in percent, that may be
	// refused or fail to run. If more do, the condition RolloutHealthy is False, and no
	// further step is entered. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=10
	MaxFailedPercent *int32 `json:"maxFailedPercent,omitempty"`

	// paused stays in the current step.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// abortedRevision is the name of a revision that no new pod gets: all get the revision
	// before. It has no effect on other revisions.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{32})?$`
	AbortedRevision string `json:"abortedRevision,omitempty"`

	// promotion enters a later step of a revision without waiting, unless the condition
	// RolloutHealthy is False and it does not override that. It has no effect on other
	// revisions.
	// +optional
	Promotion *RolloutPromotion `json:"promotion,omitempty"`
}

// RolloutStep includes pods that match all of its fields.
type RolloutStep struct {
	// percent is the share of workloads, or of pods, that the step includes. Which they are
	// depends on their names only: those of a smaller percentage are also in a larger one.
	// Default 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	Percent *int32 `json:"percent,omitempty"`

	// podSelector selects pods by the labels that they have on arrival. If absent or empty,
	// it selects all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector selects namespaces by their labels. If absent or empty, it selects
	// all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : !has(e.values) || size(e.values) == 0)",message="In and NotIn need values, Exists and DoesNotExist have none",fieldPath=".matchExpressions"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// holdSeconds is how long the step lasts, in seconds. The next step then begins; after
	// the last one, all new pods get the new revision. If absent, the step lasts until it
	// is promoted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	HoldSeconds *int64 `json:"holdSeconds,omitempty"`
}

// RolloutUnit is what a percentage of a rollout counts.
//
// +kubebuilder:validation:Enum=Workload;Pod
type RolloutUnit string

// The units. An empty unit means Workload.
const (
	RolloutByWorkload RolloutUnit = "Workload"
	RolloutByPod      RolloutUnit = "Pod"
)

// RolloutPromotion names a step of the rollout of a revision.
type RolloutPromotion struct {
	// revision is the name of the new revision.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	Revision string `json:"revision"`

	// step is the step to enter, counted from 1. If absent, the rollout is completed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Step *int32 `json:"step,omitempty"`

	// force enters the step although the condition RolloutHealthy is False. The steps after
	// it wait for the condition again.
	// +optional
	Force bool `json:"force,omitempty"`
}

// ConflictPolicy defines what happens on a conflict.
//
// +kubebuilder:validation:Enum=Kubeflow;Deny;KeepPod;Override;Skip
type ConflictPolicy string

// The conflict policies. An empty policy means Kubeflow: Deny, except that the fields which
// cannot conflict in Kubeflow's webhook still overwrite or give way.
const (
	ConflictKubeflow ConflictPolicy = "Kubeflow"
	ConflictDeny     ConflictPolicy = "Deny"
	ConflictKeepPod  ConflictPolicy = "KeepPod"
	ConflictOverride ConflictPolicy = "Override"
	ConflictSkip     ConflictPolicy = "Skip"
)

// Mode defines whether an object is applied or only audited.
//
// +kubebuilder:validation:Enum=Enforce;Audit
type Mode string

// The modes. An empty mode means Enforce.
const (
	ModeEnforce Mode = "Enforce"
	ModeAudit   Mode = "Audit"
)

// ContainerSelector selects containers by type and name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.first) || !self.first || !has(self.types) || self.types.all(t, t == 'Container')",message="the first container is of type Container; leave others out, or first",fieldPath=".types"
// +kubebuilder:validation:XValidation:rule="!has(self.names) || !has(self.excludeNames) || !self.names.exists(n, n in self.excludeNames)",message="a name stands in excludeNames too",fieldPath=".names"
type ContainerSelector struct {
	// types are the types of containers to select. Default Container, or every type if
	// names is set.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Types []ContainerType `json:"types,omitempty"`

	// first narrows the selection to one container: the first of the pod's own
	// spec.containers that is selected. In a Notebook that is the container of the
	// notebook.
	// +optional
	First bool `json:"first,omitempty"`

	// names are the names of the containers to select, service mesh proxies included. If
	// empty, all containers of the types are selected, except service mesh proxies.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// excludeNames are the names of containers that are not selected.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=63
	ExcludeNames []string `json:"excludeNames,omitempty"`
}

// ContainerType is a type of container in a pod.
//
// +kubebuilder:validation:Enum=Container;InitContainer;Injected
type ContainerType string

// The types of containers. A container that a PodDefault adds is Injected only, whichever
// list it is added to.
const (
	TypeContainer     ContainerType = "Container"     // of spec.containers
	TypeInitContainer ContainerType = "InitContainer" // of spec.initContainers, native sidecars too
	TypeInjected      ContainerType = "Injected"
)

// ContainerPosition defines where a container is inserted. The pod's own containers keep
// their order.
//
// +kubebuilder:validation:XValidation:rule="!(self.place in ['Before', 'After']) || has(self.container) && size(self.container) > 0",message="Before and After refer to a container",fieldPath=".container",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.place in ['Before', 'After'] || !has(self.container) || size(self.container) == 0",message="only Before and After refer to a container",fieldPath=".container"
// +kubebuilder:validation:XValidation:rule="!has(self.container) || self.container != self.name",message="a container cannot be put beside itself",fieldPath=".container"
type ContainerPosition struct {
	// name is the name of a container in sidecars or initContainers of the same object.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// place is First, Last, Before or After.
	// +required
	Place ContainerPlace `json:"place"`

	// container is the name of the container in the same list that Before and After refer
	// to. If the list has no such container, the place is Last, with a warning.
	// +optional
	// +kubebuilder:validation:MaxLength=63
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
	// ConditionReady sums up the others for tools, by the rules of kstatus: True if the object
	// is applied as it says, or its rollout waits for a promotion; Unknown while a rollout goes
	// on; False if the object cannot work or its rollout is stuck.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, while Ready is False and does not become True
	// by itself. Tools take such an object as failed.
	ConditionStalled = "Stalled"
	// ConditionAccepted is True if the object is valid. If False, the message lists every
	// problem.
	ConditionAccepted = "Accepted"
	// ConditionConflicting is True if this object and another one can match the same pod
	// and conflict there. The message names the other objects.
	ConditionConflicting = "Conflicting"
	// ConditionUISelectable is True if Kubeflow's forms can offer the object: matchLabels
	// of its selector has exactly one key, with the value "true".
	ConditionUISelectable = "UISelectable"
	// ConditionRolloutHealthy is False if too many pods with the new revision are refused
	// or fail to run. It exists while a rollout is in progress.
	ConditionRolloutHealthy = "RolloutHealthy"
)

// PodDefaultStatus is the observed state of a PodDefault.
type PodDefaultStatus struct {
	// observedGeneration is the metadata.generation that the conditions were computed for.
	// -1: for none yet. (+sallyport)
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the latest observations of the object. (+sallyport)
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// currentRevision is the name of the revision that the spec has. (+sallyport)
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// rollout is the state of the rollout. It exists if the spec has a rollout.
	// (+sallyport)
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// pods counts running pods. It is written at most once a minute, so it lags behind; the
	// metric sallyport_poddefault_pods does not. (+sallyport)
	// +optional
	Pods *PodCounts `json:"pods,omitempty"`
}

// RolloutStatus shows the state of a rollout. Nothing reads it: the state is in the revisions
// of the object.
type RolloutStatus struct {
	// stableRevision is the name of the revision before, which pods get that no step
	// includes. It equals currentRevision when no rollout is in progress.
	// +required
	StableRevision string `json:"stableRevision"`

	// step is the current step, counted from 1. It is absent when no rollout is in
	// progress.
	// +optional
	Step int32 `json:"step,omitempty"`

	// stepStartTime is when the current step began.
	// +optional
	StepStartTime *metav1.Time `json:"stepStartTime,omitempty"`
}

// PodCounts counts the running pods that carry an object or should carry it. Each pod is
// in one number at most.
type PodCounts struct {
	// current is the number of pods that carry the object in its current revision.
	// +required
	Current int32 `json:"current"`

	// outdated is the number of pods that carry an earlier revision.
	// +required
	Outdated int32 `json:"outdated"`

	// unknown is the number of pods that carry a revision that they do not name, because
	// Kubeflow's webhook injected them.
	// +required
	Unknown int32 `json:"unknown"`

	// missing is the number of pods that should carry the object and do not: they are older
	// than its last change.
	// +required
	Missing int32 `json:"missing"`

	// missed is the number of pods that should carry the object and do not, although they
	// are younger, and the webhook has not decided about them: it was not called, as in an
	// outage.
	// +optional
	Missed int32 `json:"missed,omitempty"`

	// surplus is the number of pods that carry the object but should no longer.
	// +required
	Surplus int32 `json:"surplus"`

	// exempt is the number of pods that do not carry the object because they are exempt.
	// +optional
	Exempt int32 `json:"exempt,omitempty"`
}

// PodDefaultList is a list of PodDefaults.
//
// +kubebuilder:object:root=true
type PodDefaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodDefault `json:"items"`
}
