// SPDX-License-Identifier: Apache-2.0

package specification

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	kubeflow "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// # Which containers

// everyContainer returns what "every container" means, except containers of a setting that the object does not name.
func (t *turn) everyContainer(except []string, ofMesh bool) (result []*corev1.Container) {
	s := ptr.Deref(t.ContainerSelector, kubeflow.ContainerSelector{})
	if len(s.Types)+len(s.Names) == 0 {
		s.Types = []kubeflow.ContainerType{kubeflow.TypeContainer}
	}
	mesh := t.MeshContainers
	own := only(t.pod.Spec.Containers, func(c corev1.Container) bool { return !t.brought[c.Name] && !t.ofSkipped(c.Name) })
	if len(own) == 1 { // it is the application, whatever its name
		mesh = nil
		if ofMesh {
			except = nil
		}
	}
	for _, c := range containers(t.pod) {
		kind := kubeflow.TypeInitContainer
		switch {
		case t.brought[c.Name]: // by any applied object
			kind = kubeflow.TypeInjected
		case slices.ContainsFunc(t.pod.Spec.Containers, named(c.Name)):
			kind = kubeflow.TypeContainer
		}
		first := kind == kubeflow.TypeContainer && len(result) == 0 && !slices.Contains(mesh, c.Name)
		isNamed := slices.Contains(s.Names, c.Name)
		if (len(s.Types) == 0 || slices.Contains(s.Types, kind)) && (len(s.Names) == 0 || isNamed) && !slices.Contains(s.ExcludeNames, c.Name) &&
			(!s.First || first) && (isNamed || !slices.Contains(except, c.Name)) && !t.ofSkipped(c.Name) {
			result = append(result, c)
		}
	}
	return result
}

// passedOver reports whether the object reaches no container because those that it selects are a mesh's, and adds nothing else.
func (t *turn) passedOver() bool {
	spec := reflect.ValueOf(t.spec.DeepCopy()).Elem()
	reaches := !isEmpty(reflect.ValueOf(t.spec.Resources))
	fold := *t.fold
	fold.MeshContainers = nil
	withoutMesh := &turn{&fold, t.object, t.spec}
	for _, field := range ofContainer {
		value := spec.FieldByName(strings.Replace(field, "SecurityContext", "ContainerSecurityContext", 1))
		reaches = reaches || !isEmpty(value)
		value.SetZero()
	}
	for field := range strings.FieldsSeq(`Resources EnvFromSecretSelector Selector Desc Priority ConflictPolicy Mode ExclusiveGroup Substitute
		ContainerSelector Positions RevisionHistoryLimit Rollout`) {
		spec.FieldByName(field).SetZero()
	}
	return reaches && isEmpty(spec) && len(t.everyContainer(t.MeshContainers, true)) == 0 && len(withoutMesh.everyContainer(nil, true)) > 0
}

// isEmpty reports whether a value adds nothing: a structure of which nothing is set adds no more than one that is absent.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || v.Elem().Kind() == reflect.Struct && isEmpty(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if !isEmpty(v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// ofSkipped reports whether a skipped object has a container of the name, which gets nothing from others.
func (d decision) ofSkipped(name string) bool {
	for o := range d.skipped {
		if slices.ContainsFunc(slices.Concat(o.InitContainers, o.Sidecars), named(name)) {
			return true
		}
	}
	return false
}

func containers(pod *corev1.Pod) (result []*corev1.Container) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			result = append(result, &list[i])
		}
	}
	return result
}

// addContainers adds the object's containers. A container of the name in the other list is a conflict that nothing resolves.
func (t *turn) addContainers() {
	add := func(path, otherPath string, list *[]corev1.Container, other []corev1.Container, wanted []corev1.Container) {
		for _, c := range wanted {
			if slices.ContainsFunc(other, named(c.Name)) {
				t.conflict(otherPath+" "+c.Name, "", false, false)
				continue
			}
			before, isNew := text(*list), !slices.ContainsFunc(*list, named(c.Name))
			t.merge(path, "", list, []corev1.Container{c})
			if text(*list) != before && (isNew || t.added[c.Name] != nil) {
				t.added[c.Name] = t.object // or it has replaced that of an earlier object
			}
		}
	}
	add("InitContainers", "Sidecars", &t.pod.Spec.InitContainers, t.pod.Spec.Containers, t.spec.InitContainers)
	add("Sidecars", "InitContainers", &t.pod.Spec.Containers, t.pod.Spec.InitContainers, t.spec.Sidecars)
}

// finish settles at the end what does not depend on the order of objects.
func (f *fold) finish() {
	if f.from["AutomountServiceAccountToken"] != nil && !*f.pod.Spec.AutomountServiceAccountToken {
		ofToken := map[string]bool{}
		f.pod.Spec.Volumes = only(f.pod.Spec.Volumes, func(v corev1.Volume) bool {
			ofToken[v.Name] = v.Projected != nil && strings.HasPrefix(v.Name, "kube-api-access-")
			return !ofToken[v.Name]
		})
		for _, c := range containers(f.pod) {
			c.VolumeMounts = only(c.VolumeMounts, func(m corev1.VolumeMount) bool { return !ofToken[m.Name] })
		}
	}
	places := map[string]kubeflow.ContainerPosition{}
	for _, o := range f.objects {
		for _, p := range o.Positions {
			if f.added[p.Name] == o {
				places[p.Name] = p
			}
		}
	}
	for _, list := range []*[]corev1.Container{&f.pod.Spec.InitContainers, &f.pod.Spec.Containers} {
		*list = f.arrange(*list, places)
	}
}

// arrange puts added containers into their places. Those with the same place keep the order in which they were added.
func (f *fold) arrange(list []corev1.Container, places map[string]kubeflow.ContainerPosition) (result []corev1.Container) {
	var seat func(c corev1.Container)
	beside := func(place kubeflow.ContainerPlace, name string) {
		for _, c := range list {
			if places[c.Name].Place == place && places[c.Name].Container == name {
				seat(c)
			}
		}
	}
	seat = func(c corev1.Container) {
		beside(kubeflow.PlaceBefore, c.Name)
		result = append(result, c)
		beside(kubeflow.PlaceAfter, c.Name)
	}
	beside(kubeflow.PlaceFirst, "")
	for _, c := range list {
		if p := places[c.Name]; p.Place == "" || p.Place == kubeflow.PlaceLast || p.Container != "" && !slices.ContainsFunc(list, named(p.Container)) {
			seat(c)
		}
	}
	for _, c := range list { // those that depend on each other
		if !slices.ContainsFunc(result, named(c.Name)) {
			result = append(result, c)
		}
	}
	return result
}

// # Placeholders

var placeholder = regexp.MustCompile(`\$\$|\$\{(?:namespace|pod\.labels\['([^']*)'\])\}`)

// substitute replaces placeholders with the labels that the pod has now. They are where they may be: elsewhere they are
// rejected when they are written. It returns whether there is a value for each.
func (t *turn) substitute() bool {
	if !t.Substitute {
		return true
	}
	missing := ""
	filled := placeholder.ReplaceAllStringFunc(text(t.spec), func(found string) string {
		label := placeholder.FindStringSubmatch(found)[1]
		switch value := t.pod.Labels[label]; {
		case found == "$$":
			return found
		case label == "":
			return t.Namespace
		case value == "" || len(validation.IsValidLabelValue(value)) > 0:
			missing = "label " + label
			return found
		default:
			return value
		}
	})
	t.spec = &kubeflow.PodDefaultSpec{}
	switch err := json.Unmarshal([]byte(filled), t.spec); {
	case missing == "":
		return err == nil
	case t.ConflictPolicy == kubeflow.ConflictKeepPod || t.ConflictPolicy == kubeflow.ConflictSkip:
		t.drop(t.object, missing)
	default:
		t.deny(t.object, missing, "conflict")
	}
	return false
}
