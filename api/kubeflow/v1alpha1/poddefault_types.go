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

	// labels are added to the pod. An added label selects no other PodDefault, only
	// ClusterPodDefaults without allowExclude. Merge key: the key. Conflict: a different
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
	// object. Kubeflow (the default) is Deny, except for what cannot conflict in Kubeflow's
	// webhook: serviceAccountName and automountServiceAccountToken override, command and
	// args give way, and tolerationSeconds replaces that of the pod. (+sallyport)
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
