// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// # Rules of the finished pod

// check denies the pod, or drops the object, for each rule that it violates since that object's turn.
func (d decision) check(f *fold, objects []*object) {
	for _, rule := range violations(f.pod) {
		since := len(objects)
		for since > 0 && slices.Contains(violations(d.fold(objects[:since-1]).pod), rule) {
			since--
		}
		if since == 0 {
			continue // the pod alone violates it
		}
		switch o := objects[since-1]; o.ConflictPolicy {
		case kubeflow.ConflictKeepPod, kubeflow.ConflictSkip:
			f.drop(o, rule)
		default:
			f.deny(o, rule, "rule")
		}
	}
}

func violations(pod *corev1.Pod) (result []string) {
	spec, hostPorts, devices := pod.Spec, map[string]bool{}, false
	dns := ptr.Deref(spec.DNSConfig, corev1.PodDNSConfig{})
	forbid := func(is bool, rule ...any) {
		if is {
			result = append(result, strings.TrimSpace(fmt.Sprintln(rule...)))
		}
	}
	for _, c := range containers(pod) {
		names, volumes := map[string]bool{}, map[string]bool{}
		for _, p := range c.Ports {
			if spec.HostNetwork && p.HostPort == 0 {
				p.HostPort = p.ContainerPort // the API server's default
			}
			if host := fmt.Sprint(p.HostIP, " ", p.HostPort, " ", strings.Replace(string(p.Protocol), "TCP", "", 1)); p.HostPort != 0 && slices.ContainsFunc(spec.Containers, named(c.Name)) {
				forbid(hostPorts[host], "hostPort for several containers:", host)
				hostPorts[host] = true
			}
			forbid(p.Name != "" && names[p.Name], "two ports of one name:", p.Name, c.Name)
			names[p.Name] = true
		}
		for _, v := range c.VolumeDevices {
			devices = true
			of := slices.IndexFunc(spec.Volumes, func(other corev1.Volume) bool { return other.Name == v.Name })
			forbid(slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name || m.MountPath == v.DevicePath }), "device is also mounted:", v, c.Name)
			forbid(of >= 0 && spec.Volumes[of].PersistentVolumeClaim == nil && spec.Volumes[of].Ephemeral == nil, "device has no claim:", v, c.Name)
			forbid(volumes[v.Name], "volume at two device paths:", v.Name, c.Name)
			volumes[v.Name] = true
		}
		if s := ptr.Deref(c.SecurityContext, corev1.SecurityContext{}); !ptr.Deref(s.AllowPrivilegeEscalation, true) {
			forbid(ptr.Deref(s.Privileged, false), "privileged without escalation:", c.Name)
			forbid(slices.Contains(ptr.Deref(s.Capabilities, corev1.Capabilities{}).Add, "CAP_SYS_ADMIN"), "CAP_SYS_ADMIN without escalation:", c.Name)
		}
		for name, request := range c.Resources.Requests {
			limit := c.Resources.Limits[name]
			forbid(strings.Contains(string(name), "/") && limit.Cmp(request) != 0, "request is not the limit:", name, c.Name)
		}
		for _, claim := range c.Resources.Claims {
			forbid(!slices.ContainsFunc(spec.ResourceClaims, func(p corev1.PodResourceClaim) bool { return p.Name == claim.Name }), "missing resource claim:", claim.Name, c.Name)
		}
	}
	forbid(len(dns.Nameservers) > 3, "more than 3 name servers")
	forbid(len(dns.Searches) > 32, "more than 32 search domains")
	forbid(spec.DNSPolicy == corev1.DNSNone && len(dns.Nameservers) == 0, "dnsPolicy None without a name server")
	forbid(!ptr.Deref(spec.HostUsers, true) && (spec.HostNetwork || spec.HostPID || spec.HostIPC || devices), "hostUsers false")
	forbid(ptr.Deref(spec.ShareProcessNamespace, false) && spec.HostPID, "shareProcessNamespace next to hostPID")
	for _, s := range ptr.Deref(spec.SecurityContext, corev1.PodSecurityContext{}).Sysctls {
		forbid(spec.HostNetwork && strings.HasPrefix(s.Name, "net."), "sysctl of the host's network:", s.Name)
	}
	forbid(len(spec.SchedulingGates) > 0 && spec.NodeName != "", "scheduling gate for a pod that has a node")
	return result
}

// # PodDefaults that cannot work

// cannotWork reports whether an object mounts a volume that neither the pod nor any applied object has, or needs Secrets
// that the server may not read.
func (d decision) cannotWork(o *object, objects []*object) bool {
	volumes := map[string]bool{}
	for _, list := range append([][]corev1.Volume{d.Pod.Spec.Volumes}, volumesOf(objects)...) {
		for _, v := range list {
			volumes[v.Name] = true
		}
	}
	missing := d.DataConnections == nil && (o.EnvFromSecretSelector != nil || o.VolumesFromSecretSelector != nil)
	for _, c := range slices.Concat(o.InitContainers, o.Sidecars, []corev1.Container{{VolumeMounts: o.VolumeMounts, VolumeDevices: o.VolumeDevices}}) {
		for _, m := range c.VolumeMounts {
			missing = missing || !volumes[m.Name]
		}
		for _, v := range c.VolumeDevices {
			missing = missing || !volumes[v.Name]
		}
	}
	return missing
}

func volumesOf(objects []*object) (lists [][]corev1.Volume) {
	for _, o := range objects {
		lists = append(lists, o.Volumes)
	}
	return lists
}
