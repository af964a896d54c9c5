// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Namespace sets what the API server sets in a Namespace: its label and its phase.
func Namespace(namespace *corev1.Namespace) {
	if namespace.Name != "" {
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		namespace.Labels[corev1.LabelMetadataName] = namespace.Name
	}
	setDefault(&namespace.Status.Phase, corev1.NamespaceActive)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Pod sets what the API server sets in each Pod that it decodes, and after each mutation:
// k8s.io/kubernetes/pkg/apis/core/v1/defaults.go and zz_generated.defaults.go, which cannot be
// imported. The defaults of storage drivers in deprecated volume types are left out.
func Pod(pod *corev1.Pod) { podSpec(&pod.Spec) }

func podSpec(s *corev1.PodSpec) {
	if s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds < 0 {
		*s.TerminationGracePeriodSeconds = 1
	}
	setPointer(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setPointer(&s.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	setDefault(&s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	setPointer(&s.SecurityContext, corev1.PodSecurityContext{})
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			container(&containers[i], s.HostNetwork)
		}
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		image(&c)
		parts(&c)
		s.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(c)
	}
	for i := range s.Volumes {
		volume(&s.Volumes[i])
	}
	roundUp(s.Overhead)
}

func container(c *corev1.Container, hostNetwork bool) {
	if c.Resources.Limits != nil && c.Resources.Requests == nil {
		c.Resources.Requests = corev1.ResourceList{}
	}
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok {
			c.Resources.Requests[name] = limit.DeepCopy()
		}
	}
	if hostNetwork {
		for i := range c.Ports {
			setDefault(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	image(c)
	parts(c)
}

func image(c *corev1.Container) {
	name := c.Image[strings.LastIndex(c.Image, "/")+1:]
	name, _, digest := strings.Cut(name, "@")
	_, tag, tagged := strings.Cut(name, ":")
	if tag == "latest" || !tagged && !digest {
		setDefault(&c.ImagePullPolicy, corev1.PullAlways)
	}
	setDefault(&c.ImagePullPolicy, corev1.PullIfNotPresent)
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
}

func parts(c *corev1.Container) {
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			fieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				setPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil {
			continue
		}
		setDefault(&probe.TimeoutSeconds, 1)
		setDefault(&probe.PeriodSeconds, 10)
		setDefault(&probe.SuccessThreshold, 1)
		setDefault(&probe.FailureThreshold, 3)
		httpGet(probe.HTTPGet)
		if probe.GRPC != nil {
			setPointer(&probe.GRPC.Service, "")
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				httpGet(handler.HTTPGet)
			}
		}
	}
}

func httpGet(get *corev1.HTTPGetAction) {
	if get != nil {
		setDefault(&get.Path, "/")
		setDefault(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func fieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		setDefault(&ref.APIVersion, "v1")
	}
}

func volume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.HostPath != nil {
		setPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		setPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		setPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		setPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		for i := range v.DownwardAPI.Items {
			fieldRef(v.DownwardAPI.Items[i].FieldRef)
		}
	}
	if v.Projected != nil {
		setPointer(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.DownwardAPI != nil {
				for j := range source.DownwardAPI.Items {
					fieldRef(source.DownwardAPI.Items[j].FieldRef)
				}
			}
			if source.ServiceAccountToken != nil {
				setPointer(&source.ServiceAccountToken.ExpirationSeconds, 60*60)
			}
		}
	}
	if v.Image != nil {
		c := corev1.Container{Image: v.Image.Reference, ImagePullPolicy: v.Image.PullPolicy}
		image(&c)
		v.Image.PullPolicy = c.ImagePullPolicy
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		setPointer(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits)
		roundUp(claim.Resources.Requests)
	}
}

// roundUp rounds quantities up to thousandths.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}
