// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// suspicions warns of settings that may be intended.
func (c *checker) suspicions(path *field.Path) {
	if wanted, to := c.spec.Resources, c.spec.ContainerSelector; wanted != nil && (to == nil || !to.First && len(to.Names) != 1) {
		for _, name := range slices.Sorted(maps.Keys(wanted.Limits)) {
			if meta.Extended(name) {
				c.warn(path.Child("resources", "limits").Key(string(name)), "each container that gets it has its own; with containerSelector.first the first one of the pod alone does")
			}
		}
	}
	if reason := UISelectable(&c.spec.Selector); reason != "" {
		c.warn(path.Child("selector"), "%s", reason)
	}
	c.unlikely(path)
	for _, volume := range StrayMounts(c.spec) {
		c.warn(path.Child("volumes"), "the volume %s is mounted but not defined: it must come from the pod or another object, or this one does nothing", volume)
	}
}

// unlikely warns of settings that the API server accepts only for few pods: those with
// something that no PodDefault can add.
func (c *checker) unlikely(path *field.Path) {
	lifecycle := func(at *field.Path, l *corev1.Lifecycle) {
		if l == nil {
			return
		}
		if l.StopSignal != nil {
			c.warn(at.Child("stopSignal"), "pods without spec.os.name are refused")
		}
		grace := ptr.Deref(c.spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
		for _, hook := range []struct {
			name    string
			handler *corev1.LifecycleHandler
		}{{"postStart", l.PostStart}, {"preStop", l.PreStop}} {
			if hook.handler != nil && hook.handler.Sleep != nil && hook.handler.Sleep.Seconds > grace {
				c.warn(at.Child(hook.name, "sleep", "seconds"), "pods whose terminationGracePeriodSeconds are less are refused")
			}
		}
	}
	security := func(at *field.Path, s *corev1.SecurityContext) {
		if s != nil && ptr.Deref(s.ProcMount, "") == corev1.UnmaskedProcMount && ptr.Deref(c.spec.HostUsers, true) {
			c.warn(at.Child("procMount"), "pods without hostUsers: false are refused")
		}
		if s != nil && s.WindowsOptions != nil && ptr.Deref(s.WindowsOptions.HostProcess, false) {
			c.warn(at.Child("windowsOptions", "hostProcess"), "pods without hostNetwork are refused")
		}
	}
	claims := func(at *field.Path, r *corev1.ResourceRequirements) {
		ofPod := func(r corev1.ResourceClaim) bool {
			return !slices.ContainsFunc(c.spec.ResourceClaims, func(own corev1.PodResourceClaim) bool { return own.Name == r.Name })
		}
		if r != nil && slices.ContainsFunc(r.Claims, ofPod) {
			c.warn(at.Child("claims"), "pods without these spec.resourceClaims are refused")
		}
	}
	if c.spec.DNSPolicy == corev1.DNSNone && (c.spec.DNSConfig == nil || len(c.spec.DNSConfig.Nameservers) == 0) {
		c.warn(path.Child("dnsPolicy"), "pods without dnsConfig.nameservers are refused")
	}
	lifecycle(path.Child("lifecycle"), c.spec.Lifecycle)
	security(path.Child("containerSecurityContext"), c.spec.ContainerSecurityContext)
	claims(path.Child("resources"), c.spec.Resources)
	for i, mount := range c.spec.VolumeMounts {
		if ptr.Deref(mount.MountPropagation, "") == corev1.MountPropagationBidirectional {
			c.warn(path.Child("volumeMounts").Index(i).Child("mountPropagation"), "pods whose containers are not privileged are refused")
		}
	}
	for i, toleration := range c.spec.Tolerations {
		if toleration.Operator == corev1.TolerationOpLt || toleration.Operator == corev1.TolerationOpGt {
			c.warn(path.Child("tolerations").Index(i).Child("operator"), "clusters without the feature TaintTolerationComparisonOperators refuse it in pods")
		}
	}
	for at, t := range broughtBy(c.spec, path) {
		lifecycle(at.Child("lifecycle"), t.Lifecycle)
		security(at.Child("securityContext"), t.SecurityContext)
		claims(at.Child("resources"), &t.Resources)
	}
}
