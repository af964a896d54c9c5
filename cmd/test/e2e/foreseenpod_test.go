// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// foreseenOfPods are combinations with the pod's operating system, its privileges and its figures.
func foreseenOfPods() map[string]foreseen {
	type spec = kubeflowv1alpha1.PodDefaultSpec
	onWindows := func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }
	onLinux := func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} }
	each := func(change func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range p.Spec.Containers {
				change(&p.Spec.Containers[i])
			}
		}
	}
	context := func(s corev1.SecurityContext) foreseen {
		return foreseen{spec{ContainerSecurityContext: &s}, onWindows, each(func(c *corev1.Container) { c.SecurityContext = &s })}
	}
	windows := &corev1.WindowsSecurityContextOptions{RunAsUserName: new("user")}
	bidirectional := corev1.MountPropagationBidirectional
	mount := corev1.VolumeMount{Name: "v", MountPath: "/data", MountPropagation: &bidirectional}
	unmasked := corev1.UnmaskedProcMount
	sleep := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 60}}}
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	half := strings.Repeat("x", 140<<10)
	out := map[string]foreseen{
		"windows-user":         context(corev1.SecurityContext{RunAsUser: new(int64(1))}),
		"windows-root":         context(corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}),
		"windows-capabilities": context(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}),
		"windows-pod-user": {
			spec{PodSecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(1))}}, onWindows,
			func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1))} }},
		"windows-group": {
			spec{PodSecurityContext: &corev1.PodSecurityContext{SupplementalGroups: []int64{1}}}, onWindows,
			func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroups: []int64{1}}
			}},
		"linux-windows": {
			spec{ContainerSecurityContext: &corev1.SecurityContext{WindowsOptions: windows}}, onLinux,
			each(func(c *corev1.Container) { c.SecurityContext = &corev1.SecurityContext{WindowsOptions: windows} })},
		"linux-windows-pod": {
			spec{PodSecurityContext: &corev1.PodSecurityContext{WindowsOptions: windows}}, onLinux,
			func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: windows} }},
		"bidirectional": {
			spec{VolumeMounts: []corev1.VolumeMount{mount}}, func(*corev1.Pod) {},
			each(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{mount} })},
		"sysctl": {
			spec{PodSecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_local_port_range", Value: "1024 65535"}}}},
			func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_local_port_range", Value: "1024 65535"}}}
			}},
		"proc-mount": {
			spec{ContainerSecurityContext: &corev1.SecurityContext{ProcMount: &unmasked}}, func(*corev1.Pod) {},
			each(func(c *corev1.Container) { c.SecurityContext = &corev1.SecurityContext{ProcMount: &unmasked} })},
		"sleep": {
			spec{Lifecycle: sleep}, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(10)) },
			each(func(c *corev1.Container) { c.Lifecycle = sleep })},
		"grace": {
			spec{TerminationGracePeriodSeconds: new(int64(10))},
			each(func(c *corev1.Container) {
				c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 20}}}
			}),
			func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(10)) }},
		"pod-limit": {
			spec{Resources: &corev1.ResourceRequirements{Limits: cpu("2")}},
			func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Limits: cpu("1"), Requests: cpu("1")}
			},
			each(func(c *corev1.Container) { c.Resources.Limits = cpu("2") })},
		"pod-request": {
			spec{Resources: &corev1.ResourceRequirements{Requests: cpu("600m")}},
			func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: cpu("1")} },
			each(func(c *corev1.Container) { c.Resources.Requests = cpu("600m") })},
		"annotations": {
			spec{Annotations: map[string]string{"a": half}}, func(p *corev1.Pod) { p.Annotations = map[string]string{"b": half} },
			func(p *corev1.Pod) { p.Annotations["a"] = half }},
	}
	return out
}
