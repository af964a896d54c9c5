// SPDX-License-Identifier: Apache-2.0

// Package validate says what may be written: what of a PodDefault's spec can never work, and what is most
// likely not intended. It knows no pod and no other PodDefault.
package validate

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Spec validates a spec at path. An error is something that can never work: injection
// leaves the object out. A warning is something allowed that is most likely unintended.
// Neither contains values of env variables or annotations.
func Spec(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) (errs field.ErrorList, warnings []string) {
	if errs = Limits(spec, len(meta.EncodedSpec(spec)), path); len(errs) > 0 {
		return errs, nil
	}
	c := checker{spec: spec}
	c.rules(path)
	c.placeholders(path)
	c.rollout(path)
	c.suspicions(path)
	c.names(path)
	return c.errs, c.warnings
}

// Errors returns the errors of a spec within [Limits]. Most specs have none, so the
// first check runs without paths: building a path for each field takes longer than
// checking.
func Errors(spec *kubeflowv1alpha1.PodDefaultSpec) field.ErrorList {
	c := checker{spec: spec}
	if c.rules(nil); len(c.errs) == 0 {
		return nil
	}
	c = checker{spec: spec}
	c.rules(field.NewPath("spec"))
	return c.errs
}

// rules looks for errors and for warnings from the same rules.
func (c *checker) rules(path *field.Path) {
	c.fields(specPlan(), reflect.ValueOf(c.spec).Elem(), path)
	c.maps(path)
	c.lists(path)
	c.containers(path)
	c.choices(path)
	c.scheduling(path)
	c.podFields(path)
	c.connections(path)
}

// child and index extend a path. They return nil for a nil path.
func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return nil
	}
	return path.Child(name)
}

func index(path *field.Path, i int) *field.Path {
	if path == nil {
		return nil
	}
	return path.Index(i)
}

// ClusterSpec reports problems of a ClusterPodDefault outside the spec shared by both
// kinds: see [Spec].
func ClusterSpec(spec *sallyportv1alpha1.ClusterPodDefaultSpec, path *field.Path) field.ErrorList {
	if spec.NamespaceSelector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(spec.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))
}

// A checker applies the rules of a PodDefault's own fields. Values of Kubernetes' types are checked wherever
// they occur.
type checker struct {
	typeChecker
	spec *kubeflowv1alpha1.PodDefaultSpec
}

// container checks rules that depend on the list of a container or on the volumes of
// the spec.
func (c *checker) container(path *field.Path, init bool, t *corev1.Container, at *field.Path) {
	if init && (t.RestartPolicy == nil || *t.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"lifecycle", t.Lifecycle != nil}, {"livenessProbe", t.LivenessProbe != nil},
			{"readinessProbe", t.ReadinessProbe != nil}, {"startupProbe", t.StartupProbe != nil},
		} {
			if f.set {
				c.invalid(at.Child(f.name), field.OmitValueType{}, "an init container may have it with restartPolicy: Always alone")
			}
		}
		for i, policy := range t.ResizePolicy {
			if policy.RestartPolicy == corev1.RestartContainer {
				c.invalid(index(child(at, "resizePolicy"), i).Child("restartPolicy"), policy.RestartPolicy, "an init container may have it with restartPolicy: Always alone")
			}
		}
	}
	c.volumesOf(path, at, t.Env, t.VolumeMounts, t.VolumeDevices)
}

// volumesOf checks references to volumes of the spec. Other volumes may be in the pod.
func (c *checker) volumesOf(path, at *field.Path, env []corev1.EnvVar, mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
	volume := func(name string, ok func(*corev1.Volume) bool, at *field.Path, want string) {
		for i := range c.spec.Volumes {
			if v := &c.spec.Volumes[i]; v.Name == name && !ok(v) {
				c.invalid(at, name, "%s must be %s", index(child(path, "volumes"), i), want)
			}
		}
	}
	for i, device := range devices {
		volume(device.Name, func(v *corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil },
			index(child(at, "volumeDevices"), i).Child("name"), "a persistentVolumeClaim or ephemeral")
	}
	for i, e := range env {
		if e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil {
			volume(e.ValueFrom.FileKeyRef.VolumeName, func(v *corev1.Volume) bool { return v.EmptyDir != nil || v.VolumeSource == (corev1.VolumeSource{}) },
				index(child(at, "env"), i).Child("valueFrom", "fileKeyRef", "volumeName"), "an emptyDir")
		}
	}
	for i, mount := range mounts {
		if len(mount.BindMountOptions) > 0 {
			volume(mount.Name, func(v *corev1.Volume) bool { return v.Image == nil },
				index(child(at, "volumeMounts"), i).Child("bindMountOptions"), "no image")
		}
	}
}

// maps checks keys and, where the API server does, values of maps.
func (c *checker) maps(path *field.Path) {
	for _, m := range []struct {
		field  string
		values map[string]string
	}{{"labels", c.spec.Labels}, {"nodeSelector", c.spec.NodeSelector}} {
		if len(m.values) == 0 {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(m.values)) {
			c.invalidEach(child(path, m.field), key, validation.IsQualifiedName(key))
			c.invalidEach(child(path, m.field).Key(key), field.OmitValueType{}, validation.IsValidLabelValue(m.values[key]))
		}
	}
	if len(c.spec.Annotations) == 0 {
		return
	}
	c.readAnnotations(child(path, "annotations"), c.spec.Annotations)
	for _, key := range slices.Sorted(maps.Keys(c.spec.Annotations)) {
		// The API server compares case-insensitively.
		c.invalidEach(child(path, "annotations"), key, validation.IsQualifiedName(strings.ToLower(key)))
		for _, own := range []string{meta.MarkPrefix, meta.ClusterMarkPrefix, meta.SkipPrefix, meta.DecisionsAnnotation, meta.LimitRangerAnnotation} {
			if strings.HasPrefix(key, own) {
				c.errs = append(c.errs, field.Forbidden(child(path, "annotations").Key(key), "the annotation is reserved for other components, which record in it what they did to the pod"))
			}
		}
	}
}

// unique reports elements with the key of an earlier element. An identical element adds
// nothing and is only a warning.
func unique[T any](c *checker, path *field.Path, keyField string, list []T, key func(*T) string) {
	if len(list) < 2 {
		return
	}
	seen := make(map[string]int, len(list))
	for i := range list {
		k := key(&list[i])
		first, twice := seen[k]
		switch at := index(path, i); {
		case !twice:
			seen[k] = i
		case equality.Semantic.DeepEqual(list[first], list[i]):
			c.warn(at, "it is the same as %s, and applies once", path.Index(first))
		default:
			c.errs = append(c.errs, field.Duplicate(at.Child(keyField), k))
		}
	}
}

func (c *checker) lists(path *field.Path) {
	s := c.spec
	unique(c, child(path, "env"), "name", s.Env, func(e *corev1.EnvVar) string { return e.Name })
	unique(c, child(path, "volumes"), "name", s.Volumes, func(v *corev1.Volume) string { return v.Name })
	unique(c, child(path, "volumeMounts"), "mountPath", s.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	unique(c, child(path, "volumeDevices"), "devicePath", s.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })
	unique(c, child(path, "volumeDevices"), "name", s.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.Name })
	c.mountsAndDevices(path, s.VolumeMounts, s.VolumeDevices)
	c.volumesOf(path, path, s.Env, s.VolumeMounts, s.VolumeDevices)
	unique(c, child(path, "ports"), "containerPort", s.Ports, func(p *corev1.ContainerPort) string {
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		return strconv.Itoa(int(p.ContainerPort)) + "/" + string(protocol)
	})
	c.portsOfPod(path)
	unique(c, child(path, "hostAliases"), "ip", s.HostAliases, func(a *corev1.HostAlias) string { return a.IP })
	unique(c, child(path, "resourceClaims"), "name", s.ResourceClaims, func(r *corev1.PodResourceClaim) string { return r.Name })
	unique(c, child(path, "schedulingGates"), "name", s.SchedulingGates, func(g *corev1.PodSchedulingGate) string { return g.Name })
	unique(c, child(path, "readinessGates"), "conditionType", s.ReadinessGates, func(g *corev1.PodReadinessGate) string { return string(g.ConditionType) })
}

// portsOfPod checks port names, which are unique per container, and host ports, which
// are unique across containers but per init container.
func (c *checker) portsOfPod(path *field.Path) {
	if len(c.spec.Ports)+len(c.spec.Sidecars)+len(c.spec.InitContainers) == 0 {
		return
	}
	names := map[string]string{}
	taken := map[string]bool{}
	take := func(at *field.Path, ports []corev1.ContainerPort, taken map[string]bool) {
		for i, port := range ports {
			key := fmt.Sprintf("%s/%s/%d", cmp.Or(port.Protocol, corev1.ProtocolTCP), port.HostIP, port.HostPort)
			if port.HostPort != 0 && taken[key] {
				c.errs = append(c.errs, field.Duplicate(index(at, i).Child("hostPort"), port.HostPort))
			}
			taken[key] = true
		}
	}
	seen := map[corev1.ContainerPort]bool{} // identical ports are one
	for i, port := range c.spec.Ports {
		key := strconv.Itoa(int(port.ContainerPort)) + string(cmp.Or(port.Protocol, corev1.ProtocolTCP))
		if other, there := names[port.Name]; there && port.Name != "" && other != key {
			c.errs = append(c.errs, field.Duplicate(index(child(path, "ports"), i).Child("name"), port.Name))
		}
		names[port.Name] = key
		if !seen[port] {
			take(child(path, "ports"), c.spec.Ports[i:i+1], taken)
		}
		seen[port] = true
	}
	for at, t := range broughtBy(c.spec, path) {
		with := taken
		if at.init {
			with = map[string]bool{}
		}
		take(child(at.Path, "ports"), t.Ports, with)
	}
}

// brought is the place of a container that an object brings.
type brought struct {
	*field.Path
	init bool
}

// broughtBy yields the containers of an object, with their places below path; a nil path has none.
func broughtBy(spec *kubeflowv1alpha1.PodDefaultSpec, path *field.Path) iter.Seq2[brought, *corev1.Container] {
	return func(yield func(brought, *corev1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(brought{index(child(path, "initContainers"), i), true}, &spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Sidecars {
			if !yield(brought{index(child(path, "sidecars"), i), false}, &spec.Sidecars[i]) {
				return
			}
		}
	}
}

func (c *checker) containers(path *field.Path) {
	name := func(container *corev1.Container) string { return container.Name }
	unique(c, child(path, "initContainers"), "name", c.spec.InitContainers, name)
	unique(c, child(path, "sidecars"), "name", c.spec.Sidecars, name)
	for at, t := range broughtBy(c.spec, path) {
		c.container(path, at.init, t, at.Path)
		if !at.init && slices.ContainsFunc(c.spec.InitContainers, func(other corev1.Container) bool { return other.Name == t.Name }) {
			c.invalid(child(at.Path, "name"), t.Name, "the name stands in initContainers too; choose another for one of them")
		}
	}
	at := child(path, "positions")
	unique(c, at, "name", c.spec.Positions, func(p *kubeflowv1alpha1.ContainerPosition) string { return p.Name })
	for i, position := range c.spec.Positions {
		at := index(at, i)
		brings := func(list []corev1.Container) bool {
			return slices.ContainsFunc(list, func(container corev1.Container) bool { return container.Name == position.Name })
		}
		if !brings(c.spec.InitContainers) && !brings(c.spec.Sidecars) {
			c.errs = append(c.errs, field.NotFound(child(at, "name"), position.Name))
		}
		relative := position.Place == kubeflowv1alpha1.PlaceBefore || position.Place == kubeflowv1alpha1.PlaceAfter
		switch {
		case relative && position.Container == "":
			c.required(child(at, "container"), "Before and After refer to a container")
		case relative && position.Container == position.Name:
			c.invalid(child(at, "container"), position.Container, "a container cannot be put beside itself")
		case !relative && position.Container != "":
			c.invalid(child(at, "container"), position.Container, "only Before and After refer to a container")
		}
		if position.Place == "" {
			c.required(child(at, "place"), "choose First, Last, Before or After")
		}
		c.oneOf(child(at, "place"), string(position.Place), "First", "Last", "Before", "After")
	}
}

func (c *checker) choices(path *field.Path) {
	c.oneOf(child(path, "conflictPolicy"), string(c.spec.ConflictPolicy), "Kubeflow", "Deny", "KeepPod", "Override", "Skip")
	c.oneOf(child(path, "mode"), string(c.spec.Mode), "Enforce", "Audit")
	c.invalidEach(child(path, "exclusiveGroup"), c.spec.ExclusiveGroup, validation.IsValidLabelValue(c.spec.ExclusiveGroup))
	if selector := c.spec.ContainerSelector; selector != nil {
		at := child(path, "containerSelector")
		for i, t := range selector.Types {
			c.oneOf(index(child(at, "types"), i), string(t), "Container", "InitContainer", "Injected")
			if selector.First && t != kubeflowv1alpha1.TypeContainer {
				c.invalid(index(child(at, "types"), i), string(t), "the first container is of type Container; leave this one out, or first")
			}
		}
		for i, name := range selector.Names {
			if slices.Contains(selector.ExcludeNames, name) {
				c.invalid(index(child(at, "names"), i), name, "the name stands in excludeNames too")
			}
		}
	}
}

func (c *checker) podFields(path *field.Path) {
	if dns := c.spec.DNSConfig; dns != nil {
		at := child(path, "dnsConfig")
		if len(dns.Nameservers) > 3 {
			c.errs = append(c.errs, field.TooMany(child(at, "nameservers"), len(dns.Nameservers), 3))
		}
		for i, server := range dns.Nameservers {
			c.ip(index(child(at, "nameservers"), i), server)
		}
		for i, search := range dns.Searches {
			if search != "." {
				c.invalidEach(at.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(search, ".")))
			}
		}
		if length := len(strings.Join(dns.Searches, " ")); length > 2048 {
			c.errs = append(c.errs, field.TooLong(at.Child("searches"), "", 2048))
		}
		if len(dns.Searches) > 32 {
			c.errs = append(c.errs, field.TooMany(at.Child("searches"), len(dns.Searches), 32))
		}
		unique(c, at.Child("options"), "name", dns.Options, func(o *corev1.PodDNSConfigOption) string { return o.Name })
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
