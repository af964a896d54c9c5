// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

func checkContainer(c *typeChecker, at *field.Path, t *corev1.Container) {
	distinct(c, at.Child("volumeMounts"), "mountPath", t.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	distinct(c, at.Child("volumeDevices"), "devicePath", t.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })
	distinct(c, at.Child("volumeDevices"), "name", t.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.Name })
	c.mountsAndDevices(at, t.VolumeMounts, t.VolumeDevices)
	if len(t.RestartPolicyRules) > 0 && t.RestartPolicy == nil {
		c.required(at.Child("restartPolicy"), "restartPolicyRules need it")
	}
	if len(t.RestartPolicyRules) > 20 {
		c.errs = append(c.errs, field.TooMany(at.Child("restartPolicyRules"), len(t.RestartPolicyRules), 20))
	}
	for i, r := range t.RestartPolicyRules {
		if r.ExitCodes != nil && len(r.ExitCodes.Values) > 255 {
			c.errs = append(c.errs, field.TooMany(at.Child("restartPolicyRules").Index(i).Child("exitCodes", "values"), len(r.ExitCodes.Values), 255))
		}
	}
	distinct(c, at.Child("resizePolicy"), "resourceName", t.ResizePolicy, func(p *corev1.ContainerResizePolicy) string { return string(p.ResourceName) })
	distinct(c, at.Child("ports"), "name", t.Ports, func(p *corev1.ContainerPort) string { return p.Name })
	for _, probe := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", t.LivenessProbe}, {"startupProbe", t.StartupProbe}} {
		if probe.probe != nil && probe.probe.SuccessThreshold > 1 {
			c.invalid(at.Child(probe.name, "successThreshold"), probe.probe.SuccessThreshold, "must be 1")
		}
	}
	if probe := t.ReadinessProbe; probe != nil && probe.TerminationGracePeriodSeconds != nil {
		c.invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"), *probe.TerminationGracePeriodSeconds, "may not be set for readiness")
	}
	privileged := t.SecurityContext != nil && ptr.Deref(t.SecurityContext.Privileged, false)
	for i, mount := range t.VolumeMounts {
		if p := ptr.Deref(mount.MountPropagation, ""); p == corev1.MountPropagationBidirectional && !privileged {
			c.invalid(at.Child("volumeMounts").Index(i).Child("mountPropagation"), p, "the container must be privileged")
		}
	}
}

// distinct reports elements with the key of an earlier one, in lists that pods take
// unchanged.
func distinct[T any](c *typeChecker, path *field.Path, keyField string, list []T, key func(*T) string) {
	seen := make(map[string]bool, len(list))
	for i := range list {
		k := key(&list[i])
		if seen[k] && k != "" {
			c.errs = append(c.errs, field.Duplicate(path.Index(i).Child(keyField), k))
		}
		seen[k] = true
	}
}

// mountsAndDevices checks one container's mounts and devices, which share paths and
// volumes.
func (c *typeChecker) mountsAndDevices(at *field.Path, mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
	if len(devices) == 0 {
		return
	}
	paths, volumes := map[string]bool{"": false}, map[string]bool{"": false}
	for i := range mounts {
		paths[mounts[i].MountPath], volumes[mounts[i].Name] = mounts[i].MountPath != "", mounts[i].Name != ""
	}
	for i, device := range devices {
		at := at.Child("volumeDevices").Index(i)
		if paths[device.DevicePath] {
			c.invalid(at.Child("devicePath"), device.DevicePath, "it is a mountPath in volumeMounts too")
		}
		if volumes[device.Name] {
			c.invalid(at.Child("name"), device.Name, "the volume is in volumeMounts too")
		}
	}
}

// checkResources checks compute resources. A name without a domain must be known to
// Kubernetes. A name with a domain is an extended resource, counted in whole numbers,
// whose request equals its limit.
func checkResources(c *typeChecker, at *field.Path, r *corev1.ResourceRequirements) {
	hugePages, cpuOrMemory := false, false
	for _, list := range []struct {
		field  string
		values corev1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			at, quantity := at.Child(list.field).Key(string(name)), list.values[name]
			c.resource(at, name, quantity)
			pages := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			hugePages = hugePages || pages
			cpuOrMemory = cpuOrMemory || name == corev1.ResourceCPU || name == corev1.ResourceMemory
			limit, limited := r.Limits[name]
			if list.field != "requests" {
				continue
			}
			switch whole := pages || meta.Extended(name); {
			case whole && !limited:
				c.required(at, "a limit must be set beside it")
			case whole && quantity.Cmp(limit) != 0:
				c.invalid(at, quantity.String(), "must be equal to the limit %s", limit.String())
			case limited && quantity.Cmp(limit) > 0:
				c.invalid(at, quantity.String(), "must not be larger than the limit %s", limit.String())
			}
		}
	}
	if hugePages && !cpuOrMemory {
		c.invalid(at, field.OmitValueType{}, "huge pages need a request or limit of cpu or memory")
	}
	at = at.Child("claims")
	distinct(c, at, "request", r.Claims, func(r *corev1.ResourceClaim) string { return r.Name + "/" + r.Request })
	for i, claim := range r.Claims {
		if claim.Request != "" && slices.Contains(r.Claims, corev1.ResourceClaim{Name: claim.Name}) {
			c.errs = append(c.errs, field.Duplicate(at.Index(i).Child("name"), claim.Name))
		}
	}
}

func (c *typeChecker) resource(at *field.Path, name corev1.ResourceName, quantity resource.Quantity) {
	text := string(name)
	if problems := validation.IsQualifiedName(text); len(problems) > 0 {
		c.invalidEach(at, text, problems)
	} else if pageSize, ok := strings.CutPrefix(text, corev1.ResourceHugePagesPrefix); ok {
		if size, err := resource.ParseQuantity(pageSize); err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 || quantity.Value()%size.Value() != 0 {
			c.invalid(at, quantity.String(), "must be a multiple of the size of a page")
		}
	} else if !strings.Contains(text, "/") {
		c.oneOf(at, text, "cpu", "memory", "ephemeral-storage")
	} else if meta.Extended(name) {
		if strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
			c.invalid(at, text, "must not begin with requests.")
		}
		c.invalidEach(at, text, validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text))
		if quantity.MilliValue()%1000 != 0 {
			c.invalid(at, quantity.String(), "must be a whole number")
		}
	}
	if quantity.Sign() < 0 {
		c.invalid(at, quantity.String(), "must not be negative")
	}
}

func (c *typeChecker) portNumberOrName(at *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		c.invalidEach(at, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
	} else {
		c.invalidEach(at, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
}

func checkHTTPGet(c *typeChecker, at *field.Path, a *corev1.HTTPGetAction) {
	c.portNumberOrName(at.Child("port"), a.Port)
	if a.Protocol != nil && *a.Protocol == corev1.HTTPProtocolHTTP2 {
		if a.Scheme == corev1.URISchemeHTTPS {
			c.invalid(at.Child("protocol"), *a.Protocol, "the scheme must be HTTP")
		}
		if a.Host != "" {
			c.invalid(at.Child("host"), a.Host, "may not be set beside the protocol HTTP2")
		}
	}
}

func checkTCPSocket(c *typeChecker, at *field.Path, a *corev1.TCPSocketAction) {
	c.portNumberOrName(at.Child("port"), a.Port)
}
