// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Check reports what is wrong with a spec that stands at path. A mistake is what can
// never work: an object that has one is left out when pods are created. A warning
// is of what is allowed and most likely not meant. Neither holds values of env
// variables or annotations.
func Check(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) (mistakes field.ErrorList, warnings []string) {
	c := checker{spec: spec}
	c.selector(path.Child("selector"))
	c.maps(path)
	c.lists(path)
	c.containers(path)
	c.choices(path)
	c.scheduling(path)
	c.podFields(path)
	c.resources(path.Child("resources"))
	c.placeholders(path)
	c.suspicions(path)
	return c.mistakes, c.warnings
}

// CheckCluster reports the mistakes that a ClusterPodDefault can have beyond those of
// the spec that both kinds share: see [Check].
func CheckCluster(spec *sallyportv1alpha1.ClusterPodDefaultSpec, path *field.Path) field.ErrorList {
	if spec.NamespaceSelector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(spec.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))
}

// UISelectable says why the forms of Kubeflow's web apps cannot offer an object with
// this selector; nothing if they can. They know the first key of matchLabels alone,
// and set that label to "true".
func UISelectable(selector *metav1.LabelSelector) (reason string) {
	switch {
	case len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0:
		return "the selector is empty: it selects every pod, and there is nothing to choose"
	case len(selector.MatchLabels) == 0:
		return "the selector has no matchLabels, without which Kubeflow's forms cannot list the objects of a namespace at all"
	case len(selector.MatchLabels) > 1:
		return "the selector has several matchLabels, of which Kubeflow's forms set one"
	case len(selector.MatchExpressions) > 0:
		return "the selector has matchExpressions, which Kubeflow's forms do not look at"
	}
	for key, value := range selector.MatchLabels {
		if value != "true" {
			return fmt.Sprintf("the selector wants another value of the label %s than \"true\", which is what Kubeflow's forms set", key)
		}
	}
	return ""
}

type checker struct {
	spec     *kubeflowv1alpha1.PodDefaultSpec
	mistakes field.ErrorList
	warnings []string
}

func (c *checker) invalid(path *field.Path, value any, format string, args ...any) {
	c.mistakes = append(c.mistakes, field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

func (c *checker) invalidEach(path *field.Path, value any, problems []string) {
	for _, problem := range problems {
		c.invalid(path, value, "%s", problem)
	}
}

func (c *checker) required(path *field.Path, detail string) {
	c.mistakes = append(c.mistakes, field.Required(path, detail))
}

func (c *checker) warn(path *field.Path, format string, args ...any) {
	c.warnings = append(c.warnings, path.String()+": "+fmt.Sprintf(format, args...))
}

func (c *checker) selector(path *field.Path) {
	known := len(c.mistakes)
	c.mistakes = append(c.mistakes, metav1validation.ValidateLabelSelector(&c.spec.Selector, metav1validation.LabelSelectorValidationOptions{}, path)...)
	if _, err := metav1.LabelSelectorAsSelector(&c.spec.Selector); err != nil && len(c.mistakes) == known {
		c.invalid(path, "", "%v", err)
	}
}

// maps checks the keys and, where the API server does, the values of maps.
func (c *checker) maps(path *field.Path) {
	for _, m := range []struct {
		field  string
		values map[string]string
	}{{"labels", c.spec.Labels}, {"nodeSelector", c.spec.NodeSelector}} {
		for _, key := range slices.Sorted(maps.Keys(m.values)) {
			c.invalidEach(path.Child(m.field), key, validation.IsQualifiedName(key))
			c.invalidEach(path.Child(m.field).Key(key), field.OmitValueType{}, validation.IsValidLabelValue(m.values[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.spec.Annotations)) {
		// The API server compares without regard to case.
		c.invalidEach(path.Child("annotations"), key, validation.IsQualifiedName(strings.ToLower(key)))
		for _, own := range []string{MarkPrefix, ClusterMarkPrefix, SkipPrefix, DecisionsAnnotation, limitRangerAnnotation} {
			if strings.HasPrefix(key, own) {
				c.mistakes = append(c.mistakes, field.Forbidden(path.Child("annotations").Key(key), "it is an annotation by which others say what they did to the pod"))
			}
		}
	}
}

// unique reports elements whose key another one before them has. One that is the same
// as that one adds nothing, and is only warned of.
func unique[T any](c *checker, path *field.Path, keyField string, list []T, key func(*T) string) {
	seen := make(map[string]int, len(list))
	for i := range list {
		k := key(&list[i])
		first, twice := seen[k]
		switch at := path.Index(i); {
		case !twice:
			seen[k] = i
		case equality.Semantic.DeepEqual(list[first], list[i]):
			c.warn(at, "it is the same as %s, and counts once", path.Index(first))
		default:
			c.mistakes = append(c.mistakes, field.Duplicate(at.Child(keyField), k))
		}
	}
}

func (c *checker) lists(path *field.Path) {
	s := c.spec
	unique(c, path.Child("env"), "name", s.Env, func(e *corev1.EnvVar) string { return e.Name })
	for i, env := range s.Env {
		if at := path.Child("env").Index(i).Child("name"); env.Name == "" {
			c.required(at, "a variable has a name")
		} else {
			c.invalidEach(at, env.Name, validation.IsRelaxedEnvVarName(env.Name))
		}
	}
	unique(c, path.Child("volumes"), "name", s.Volumes, func(v *corev1.Volume) string { return v.Name })
	for i, volume := range s.Volumes {
		c.invalidEach(path.Child("volumes").Index(i).Child("name"), volume.Name, validation.IsDNS1123Label(volume.Name))
	}
	unique(c, path.Child("volumeMounts"), "mountPath", s.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	for i, mount := range s.VolumeMounts {
		if mount.MountPath == "" {
			c.required(path.Child("volumeMounts").Index(i).Child("mountPath"), "a mount has a path")
		}
	}
	unique(c, path.Child("volumeDevices"), "devicePath", s.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })
	for i, device := range s.VolumeDevices {
		at := path.Child("volumeDevices").Index(i).Child("devicePath")
		if device.DevicePath == "" {
			c.required(at, "a device has a path")
		}
		if slices.ContainsFunc(s.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == device.DevicePath }) {
			c.invalid(at, device.DevicePath, "it is a mountPath in volumeMounts too")
		}
	}
	unique(c, path.Child("ports"), "containerPort", s.Ports, func(p *corev1.ContainerPort) string {
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		return strconv.Itoa(int(p.ContainerPort)) + "/" + string(protocol)
	})
	for i, port := range s.Ports {
		at := path.Child("ports").Index(i)
		c.invalidEach(at.Child("containerPort"), port.ContainerPort, validation.IsValidPortNum(int(port.ContainerPort)))
		if port.HostPort != 0 {
			c.invalidEach(at.Child("hostPort"), port.HostPort, validation.IsValidPortNum(int(port.HostPort)))
		}
		if port.Name != "" {
			c.invalidEach(at.Child("name"), port.Name, validation.IsValidPortName(port.Name))
		}
		c.oneOf(at.Child("protocol"), string(port.Protocol), "TCP", "UDP", "SCTP")
	}
	unique(c, path.Child("hostAliases"), "ip", s.HostAliases, func(a *corev1.HostAlias) string { return a.IP })
	for i, alias := range s.HostAliases {
		at := path.Child("hostAliases").Index(i)
		if _, err := netip.ParseAddr(alias.IP); err != nil {
			c.invalid(at.Child("ip"), alias.IP, "no IP address")
		}
		for j, name := range alias.Hostnames {
			c.invalidEach(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))
		}
	}
}

func (c *checker) containers(path *field.Path) {
	name := func(container *corev1.Container) string { return container.Name }
	unique(c, path.Child("initContainers"), "name", c.spec.InitContainers, name)
	unique(c, path.Child("sidecars"), "name", c.spec.Sidecars, name)
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"initContainers", c.spec.InitContainers}, {"sidecars", c.spec.Sidecars}} {
		for i := range list.containers {
			at := path.Child(list.field).Index(i).Child("name")
			c.invalidEach(at, list.containers[i].Name, validation.IsDNS1123Label(list.containers[i].Name))
			if list.field == "sidecars" && slices.ContainsFunc(c.spec.InitContainers, func(other corev1.Container) bool { return other.Name == list.containers[i].Name }) {
				c.invalid(at, list.containers[i].Name, "the name stands in initContainers too; choose another for one of them")
			}
		}
	}
	at := path.Child("positions")
	unique(c, at, "name", c.spec.Positions, func(p *kubeflowv1alpha1.ContainerPosition) string { return p.Name })
	for i, position := range c.spec.Positions {
		at := at.Index(i)
		brings := func(list []corev1.Container) bool {
			return slices.ContainsFunc(list, func(container corev1.Container) bool { return container.Name == position.Name })
		}
		if !brings(c.spec.InitContainers) && !brings(c.spec.Sidecars) {
			c.mistakes = append(c.mistakes, field.NotFound(at.Child("name"), position.Name))
		}
		relative := position.Place == kubeflowv1alpha1.PlaceBefore || position.Place == kubeflowv1alpha1.PlaceAfter
		switch {
		case relative && position.Container == "":
			c.required(at.Child("container"), "Before and After refer to a container")
		case relative && position.Container == position.Name:
			c.invalid(at.Child("container"), position.Container, "a container cannot be put beside itself")
		case !relative && position.Container != "":
			c.invalid(at.Child("container"), position.Container, "only Before and After refer to a container")
		}
		if position.Place == "" {
			c.required(at.Child("place"), "choose First, Last, Before or After")
		}
		c.oneOf(at.Child("place"), string(position.Place), "First", "Last", "Before", "After")
	}
}

// oneOf reports a value that is set and none of the choices.
func (c *checker) oneOf(path *field.Path, value string, choices ...string) {
	if value != "" && !slices.Contains(choices, value) {
		c.mistakes = append(c.mistakes, field.NotSupported(path, value, choices))
	}
}

func (c *checker) choices(path *field.Path) {
	c.oneOf(path.Child("conflictPolicy"), string(c.spec.ConflictPolicy), "Deny", "KeepPod", "Override", "Skip")
	c.oneOf(path.Child("mode"), string(c.spec.Mode), "Enforce", "Audit")
	c.invalidEach(path.Child("exclusiveGroup"), c.spec.ExclusiveGroup, validation.IsValidLabelValue(c.spec.ExclusiveGroup))
	if selector := c.spec.ContainerSelector; selector != nil {
		at := path.Child("containerSelector")
		for i, t := range selector.Types {
			c.oneOf(at.Child("types").Index(i), string(t), "Container", "InitContainer", "Injected")
			if selector.First && t != kubeflowv1alpha1.TypeContainer {
				c.invalid(at.Child("types").Index(i), string(t), "the first container is of type Container; leave this one out, or first")
			}
		}
		for i, name := range selector.Names {
			if slices.Contains(selector.ExcludeNames, name) {
				c.invalid(at.Child("names").Index(i), name, "the name stands in excludeNames too")
			}
		}
	}
}

func (c *checker) podFields(path *field.Path) {
	for _, name := range []struct {
		field, value string
	}{{"serviceAccountName", c.spec.ServiceAccountName}, {"priorityClassName", c.spec.PriorityClassName}, {"runtimeClassName", deref(c.spec.RuntimeClassName)}} {
		if name.value != "" {
			c.invalidEach(path.Child(name.field), name.value, validation.IsDNS1123Subdomain(name.value))
		}
	}
	if seconds := c.spec.TerminationGracePeriodSeconds; seconds != nil && *seconds < 0 {
		c.invalid(path.Child("terminationGracePeriodSeconds"), *seconds, "must not be negative")
	}
	if dns := c.spec.DNSConfig; dns != nil {
		at := path.Child("dnsConfig")
		if len(dns.Nameservers) > 3 {
			c.mistakes = append(c.mistakes, field.TooMany(at.Child("nameservers"), len(dns.Nameservers), 3))
		}
		for i, server := range dns.Nameservers {
			if _, err := netip.ParseAddr(server); err != nil {
				c.invalid(at.Child("nameservers").Index(i), server, "no IP address")
			}
		}
		if len(dns.Searches) > 32 {
			c.mistakes = append(c.mistakes, field.TooMany(at.Child("searches"), len(dns.Searches), 32))
		}
		unique(c, at.Child("options"), "name", dns.Options, func(o *corev1.PodDNSConfigOption) string { return o.Name })
		for i, option := range dns.Options {
			if option.Name == "" {
				c.required(at.Child("options").Index(i).Child("name"), "an option has a name")
			}
		}
	}
	if security := c.spec.PodSecurityContext; security != nil {
		unique(c, path.Child("podSecurityContext", "sysctls"), "name", security.Sysctls, func(s *corev1.Sysctl) string { return s.Name })
	}
	if security := c.spec.ContainerSecurityContext; security != nil && security.Capabilities != nil {
		for i, capability := range security.Capabilities.Add {
			if slices.Contains(security.Capabilities.Drop, capability) {
				c.invalid(path.Child("containerSecurityContext", "capabilities", "add").Index(i), string(capability), "it stands in drop too")
			}
		}
	}
}

func (c *checker) resources(path *field.Path) {
	if c.spec.Resources == nil {
		return
	}
	for _, list := range []struct {
		field  string
		values corev1.ResourceList
	}{{"requests", c.spec.Resources.Requests}, {"limits", c.spec.Resources.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			at := path.Child(list.field).Key(string(name))
			quantity := list.values[name]
			c.invalidEach(at, string(name), validation.IsQualifiedName(string(name)))
			if quantity.Sign() < 0 {
				c.invalid(at, quantity.String(), "must not be negative")
			}
			limit, limited := c.spec.Resources.Limits[name]
			if list.field == "requests" && limited && quantity.Cmp(limit) > 0 {
				c.invalid(at, quantity.String(), "must not be larger than the limit %s", limit.String())
			}
		}
	}
}

// suspicions warns of what may well be meant.
func (c *checker) suspicions(path *field.Path) {
	if reason := UISelectable(&c.spec.Selector); reason != "" {
		c.warn(path.Child("selector"), "%s", reason)
	}
	for _, volume := range strayMounts(c.spec) {
		c.warn(path.Child("volumes"), "the volume %s is mounted but not brought along: it must come from the pod or another object, or this one does nothing", volume)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
