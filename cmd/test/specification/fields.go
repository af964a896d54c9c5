// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// # Fields

// The table, by the names of fields in Go, which are the same in a PodDefault and in a pod.
var (
	ofPod = strings.Fields(`Volumes Tolerations ImagePullSecrets ServiceAccountName AutomountServiceAccountToken NodeSelector Affinity
		TopologySpreadConstraints SecurityContext PriorityClassName RuntimeClassName TerminationGracePeriodSeconds HostAliases DNSConfig
		ResourceClaims SchedulingGates ReadinessGates SchedulerName HostUsers ShareProcessNamespace ActiveDeadlineSeconds EnableServiceLinks
		DNSPolicy`)
	ofContainer = strings.Fields("Env EnvFrom VolumeMounts VolumeDevices Ports SecurityContext TerminationMessagePolicy Lifecycle")
	ofProgram   = strings.Fields("Command Args")
	// Merge keys; an element of another list is its own key.
	mergeKeys = map[string]string{"InitContainers": "Name", "Sidecars": "Name", "Volumes": "Name", "Env": "Name", "VolumeMounts": "MountPath",
		"VolumeDevices": "DevicePath", "Ports": "ContainerPort Protocol", "Tolerations": "Key Operator Value Effect", "HostAliases": "IP", "Options": "Name",
		"TopologySpreadConstraints": "TopologyKey WhenUnsatisfiable", "Sysctls": "Name", "ResourceClaims": "Name"}
	// Structs that are merged field by field; all others are values.
	byField = strings.Fields("SecurityContext Affinity NodeAffinity PodAffinity PodAntiAffinity DNSConfig Lifecycle")
	// What an absent part of a merge key means, and defaults of the API server that count as not set.
	absent = map[string]string{"Operator": "Equal", "Protocol": "TCP"}
	unset  = map[string]string{"ServiceAccountName": "default", "TerminationGracePeriodSeconds": "30", "SchedulerName": "default-scheduler",
		"EnableServiceLinks": "true", "DNSPolicy": "ClusterFirst", "TerminationMessagePolicy": "File"}
	// Without a conflictPolicy, the last object wins, or the first.
	lastWins, firstWins = strings.Fields("ServiceAccountName AutomountServiceAccountToken"), ofProgram
)

// fields applies the object's fields to the pod and its containers.
func (t *turn) fields() {
	class := t.pod.Spec.PriorityClassName
	if t.passed[t.object] = t.passedOver(); t.passed[t.object] {
		t.warn(t.object, "ContainerSelector", "reaches no container")
	}
	t.merge("Annotations", "", &t.pod.Annotations, t.spec.Annotations)
	t.mergeAll(ofPod, "", &t.pod.Spec, "PodSecurityContext")
	if t.pod.Spec.PriorityClassName != class {
		t.pod.Spec.Priority, t.pod.Spec.PreemptionPolicy = nil, nil
	}
	t.pod.Spec.DeprecatedServiceAccount = t.pod.Spec.ServiceAccountName
	for _, c := range t.everyContainer(t.MeshContainers, true) {
		keepsRunning := c.RestartPolicy != nil || slices.ContainsFunc(t.pod.Spec.Containers, named(c.Name))
		t.mergeAll(only(ofContainer, func(field string) bool { return field != "Lifecycle" || keepsRunning }), c.Name, c, "ContainerSecurityContext")
		t.resources(c)
	}
	for _, c := range t.everyContainer(t.ExcludedContainers, false) {
		t.mergeAll(ofProgram, c.Name, c, "")
	}
}

func (t *turn) mergeAll(fields []string, container string, into any, securityContext string) {
	for _, field := range fields {
		want := reflect.ValueOf(*t.spec).FieldByName(strings.Replace(field, "SecurityContext", securityContext, 1))
		t.merge(field, container, reflect.ValueOf(into).Elem().FieldByName(field).Addr().Interface(), want.Interface())
	}
}

// merge adds the wanted value of a field to what the pod, or one of its containers, has there.
func (t *turn) merge(path, container string, into, wanted any) {
	have, want, field := reflect.ValueOf(into).Elem(), reflect.ValueOf(wanted), path[strings.LastIndex(path, ".")+1:]
	switch {
	case want.IsZero():
	case want.Type() == reflect.TypeFor[*corev1.NodeSelector]():
		narrow(into.(**corev1.NodeSelector), wanted.(*corev1.NodeSelector))
	case field == "Capabilities":
		t.capabilities(path, container, into.(**corev1.Capabilities), wanted.(*corev1.Capabilities))
	case slices.Contains(byField, field):
		if have.IsNil() {
			have.Set(reflect.New(have.Type().Elem()))
		}
		for i := range want.Elem().NumField() {
			t.merge(path+"."+want.Elem().Type().Field(i).Name, container, have.Elem().Field(i).Addr().Interface(), want.Elem().Field(i).Interface())
		}
	case want.Kind() == reflect.Map:
		if have.IsNil() {
			have.Set(reflect.MakeMap(have.Type()))
		}
		for _, k := range want.MapKeys() {
			if h := have.MapIndex(k); t.wins(path+" "+k.String(), container, h.IsValid() && h.Equal(want.MapIndex(k)), !h.IsValid()) {
				have.SetMapIndex(k, want.MapIndex(k))
			}
		}
	case want.Kind() == reflect.Slice && !slices.Contains(ofProgram, field):
		for i := range want.Len() {
			t.mergeElement(path, container, have, want.Index(i))
		}
	default:
		isDefault := t.from[element(path, container)] == nil && unset[field] == text(have.Interface())
		empty := have.IsZero() || have.Kind() == reflect.Slice && have.Len() == 0
		set := t.setter(path, element(path, container), have)
		if t.wins(path, container, !have.IsZero() && same(path, want, have), empty || isDefault) {
			set(want)
		}
	}
}

// setter returns what sets an element. One that comes back to what the pod has is the pod's own again, with all that objects
// do not name.
func (t *turn) setter(path, element string, have reflect.Value) (set func(want reflect.Value)) {
	if _, known := t.originals[element]; !known && t.from[element] == nil {
		original := reflect.New(have.Type()).Elem()
		original.Set(have)
		t.originals[element] = original
	}
	return func(want reflect.Value) {
		if original, ok := t.originals[element]; ok && !original.IsZero() && original.Type() != reflect.TypeFor[corev1.Container]() && same(path, want, original) {
			want, t.agreed[element] = original, true
		}
		have.Set(want)
	}
}

func (t *turn) mergeElement(path, container string, have, want reflect.Value) {
	field := path[strings.LastIndex(path, ".")+1:]
	name := path + " " + key(field, want)
	for i := range have.Len() {
		if h := have.Index(i); key(field, h) == key(field, want) {
			// tolerationSeconds of the pod are replaced without a conflictPolicy, and with one if they are the API server's.
			toleration, is := h.Interface().(corev1.Toleration)
			free := is && t.from[name] == nil && (t.ConflictPolicy == "" || ptr.Deref(toleration.TolerationSeconds, 0) == 300)
			set := t.setter(path, element(name, container), h)
			if t.wins(name, container, mergeKeys[field] == "" || same(path, want, h), free) {
				set(want) // in its place
			}
			return
		}
	}
	t.wins(name, container, false, true)
	have.Set(reflect.Append(have, want))
}

// key is the merge key of an element. An absent optional is false.
func key(field string, v reflect.Value) (key string) {
	if mergeKeys[field] == "" {
		return strings.Replace(text(v.Interface()), `,"optional":false`, "", 1)
	}
	for part := range strings.FieldsSeq(mergeKeys[field]) {
		value := text(v.FieldByName(part).Interface())
		if value == "" {
			value = absent[part]
		}
		key = strings.TrimSpace(key + " " + value)
	}
	return key
}

// same compares what is set in the wanted value. Where an absent field means something, it compares all.
func same(path string, want, have reflect.Value) bool {
	switch w := want.Interface().(type) {
	case corev1.Toleration:
		return ptr.Equal(w.TolerationSeconds, have.Interface().(corev1.Toleration).TolerationSeconds)
	case corev1.EnvVar:
		h := have.Interface().(corev1.EnvVar)
		return w.Value == h.Value && (w.ValueFrom == nil) == (h.ValueFrom == nil) && agrees(want, have)
	case corev1.ContainerPort:
		h := have.Interface().(corev1.ContainerPort)
		w.Protocol, h.Protocol = "", "" // in the key, where an absent one is TCP
		return agrees(reflect.ValueOf(w), reflect.ValueOf(h))
	case corev1.VolumeMount:
		return agrees(want, have) && agrees(have, want)
	}
	return agrees(want, have) && (!strings.Contains(path, "SecurityContext.") || agrees(have, want))
}

// agrees reports whether have has all that is set in want. Lists to which objects add may have more.
func agrees(want, have reflect.Value) bool {
	if q, ok := want.Interface().(resource.Quantity); ok {
		return q.Cmp(have.Interface().(resource.Quantity)) == 0
	}
	same := true
	switch want.Kind() {
	case reflect.Pointer:
		return !have.IsNil() && agrees(want.Elem(), have.Elem())
	case reflect.Struct:
		for i := range want.NumField() {
			same = same && (want.Field(i).IsZero() || agrees(want.Field(i), have.Field(i)))
		}
	case reflect.Map:
		for _, key := range want.MapKeys() {
			same = same && have.MapIndex(key).IsValid() && agrees(want.MapIndex(key), have.MapIndex(key))
		}
	case reflect.Slice:
		closed := slices.Contains(strings.Fields("string KeyToPath VolumeProjection DownwardAPIVolumeFile"), want.Type().Elem().Name())
		same = !closed || want.Len() == have.Len()
		for i := range want.Len() {
			found := false
			for j := range have.Len() {
				found = found || agrees(want.Index(i), have.Index(j))
			}
			same = same && found
		}
	default:
		return want.Equal(have)
	}
	return same
}

// capabilities are never overridden where the other list has them.
func (t *turn) capabilities(path, container string, into **corev1.Capabilities, want *corev1.Capabilities) {
	have := ptr.Deref(*into, corev1.Capabilities{})
	*into = &have
	without := func(wanted, opposite []corev1.Capability, list string) []corev1.Capability {
		return only(wanted, func(c corev1.Capability) bool {
			return !slices.Contains(opposite, c) || t.conflict(path+list+" "+string(c), container, false, false)
		})
	}
	t.merge(path+".Add", container, &have.Add, without(want.Add, have.Drop, ".Drop"))
	t.merge(path+".Drop", container, &have.Drop, without(want.Drop, have.Add, ".Add"))
}

// narrow adds each wanted term to each of the pod's, which are alternatives, unless that has all that one of them asks for.
func narrow(have **corev1.NodeSelector, want *corev1.NodeSelector) {
	if *have == nil {
		*have = want
		return
	}
	var terms []corev1.NodeSelectorTerm
	for _, h := range (*have).NodeSelectorTerms {
		if slices.ContainsFunc(want.NodeSelectorTerms, func(w corev1.NodeSelectorTerm) bool { return agrees(reflect.ValueOf(w), reflect.ValueOf(h)) }) {
			terms = append(terms, h)
			continue
		}
		for _, w := range want.NodeSelectorTerms {
			terms = append(terms, corev1.NodeSelectorTerm{
				MatchExpressions: union(h.MatchExpressions, w.MatchExpressions), MatchFields: union(h.MatchFields, w.MatchFields)})
		}
	}
	*have = &corev1.NodeSelector{NodeSelectorTerms: terms}
}

// resources sets missing values, and replaces those that a LimitRange filled in.
func (t *turn) resources(c *corev1.Container) {
	want, have := ptr.Deref(t.spec.Resources, corev1.ResourceRequirements{}), &c.Resources
	have.Claims = union(have.Claims, want.Claims)
	for _, name := range slices.Collect(maps.Keys(merged(want.Requests, want.Limits))) {
		requests := t.quantity("request", name, c.Name, have.Requests, want.Requests)
		limits := t.quantity("limit", name, c.Name, have.Limits, want.Limits)
		request, limit := requests[name], limits[name]
		_, limited := limits[name]
		replaced := t.replacedQuantity("request", name, c, have.Requests, want.Requests) && !limit.Equal(have.Limits[name]) ||
			t.replacedQuantity("limit", name, c, have.Limits, want.Limits) && !request.Equal(have.Requests[name])
		if limited && request.Cmp(limit) > 0 || replaced {
			t.warn(t.object, "Resources "+string(name)+" of container "+c.Name, "skipped")
			continue
		}
		have.Requests, have.Limits = requests, limits
	}
}

// quantity returns what the container would have.
func (t *turn) quantity(kind string, name corev1.ResourceName, container string, have, want corev1.ResourceList) corev1.ResourceList {
	h, has := have[name]
	w, wants := want[name]
	e := element(kind+" "+string(name), container)
	if !wants || has && !h.Equal(w) && (!t.filledIn(kind, name, container) || t.from[e] != nil) {
		return have
	}
	t.from[e] = t.object
	return merged(have, corev1.ResourceList{name: w})
}

// filledIn reports whether a LimitRange set a request or limit:
// "LimitRanger plugin set: cpu, memory request for container main; cpu limit for init container setup".
func (r Request) filledIn(kind string, name corev1.ResourceName, container string) bool {
	_, note, _ := strings.Cut(r.Pod.Annotations["kubernetes.io/limit-ranger"], ": ")
	return slices.ContainsFunc(strings.Split(note, "; "), func(part string) bool {
		names, rest, _ := strings.Cut(part, " "+kind+" for ")
		return strings.HasSuffix(rest, "container "+container) && slices.Contains(strings.Split(names, ", "), string(name))
	})
}

// replacedQuantity reports whether the object was tried before, and a later one has replaced a value since that a LimitRange
// had filled in, and with which its own went together then or not.
func (t *turn) replacedQuantity(kind string, name corev1.ResourceName, c *corev1.Container, have, want corev1.ResourceList) bool {
	_, wants := want[name]
	if wants || !t.marked(t.object) || t.mandatory() && !t.applied(t.object) || !t.filledIn(kind, name, c.Name) {
		return false
	}
	return slices.ContainsFunc(t.fold.objects[slices.Index(t.fold.objects, t.object)+1:], func(later *object) bool {
		list := ptr.Deref(later.Resources, corev1.ResourceRequirements{}).Requests
		if kind == "limit" {
			list = ptr.Deref(later.Resources, corev1.ResourceRequirements{}).Limits
		}
		value, is := list[name]
		now, has := have[name]
		reached := (&turn{t.fold, later, later.PodDefaultSpec.DeepCopy()}).everyContainer(t.MeshContainers, true)
		return is && has && value.Equal(now) && slices.Contains(reached, c)
	})
}

// merged returns both maps; b has the last word.
func merged(a, b corev1.ResourceList) corev1.ResourceList {
	result := corev1.ResourceList{}
	maps.Copy(result, a)
	maps.Copy(result, b)
	return result
}

// text is a value as JSON, a string without quotes.
func text(v any) string {
	raw, _ := json.Marshal(v)
	return strings.Trim(string(raw), `"`)
}

// union appends what is not there.
func union[T any](have, want []T) []T {
	return append(slices.Clip(have), only(want, func(w T) bool {
		return !slices.ContainsFunc(have, func(h T) bool { return text(h) == text(w) })
	})...)
}

func only[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(e T) bool { return !keep(e) })
}

func named(name string) func(corev1.Container) bool {
	return func(c corev1.Container) bool { return c.Name == name }
}
