// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// intend is what the webhook should make of a pod, written down once more in the
// plainest way: on typed structs, for the fields that the generators draw, with
// values that were not defaulted. It returns whether there is a conflict instead.
func intend(before *corev1.Pod, all []*kubeflowv1alpha1.PodDefault) (pod *corev1.Pod, conflict bool) {
	pod = before.DeepCopy()
	var chosen []*kubeflowv1alpha1.PodDefault
	for mute := map[string]bool{}; ; {
		before := len(mute)
		all := intendedChoice(pod, all, mute)
		chosen = intendedUsable(pod, all)
		for _, pd := range all {
			if !slices.Contains(chosen, pd) {
				mute[pd.Name] = true
			}
		}
		if len(mute) == before {
			break
		}
	}
	var brought []string
	for _, pd := range chosen {
		for _, container := range slices.Concat(pd.Spec.Sidecars, pd.Spec.InitContainers) {
			brought = append(brought, container.Name)
		}
	}
	args := map[string]bool{}
	for _, pd := range chosen {
		spec := pd.Spec
		pod.Labels, conflict = addEntries(pod.Labels, spec.Labels, conflict)
		pod.Annotations, conflict = addEntries(pod.Annotations, spec.Annotations, conflict)
		pod.Annotations, conflict = addEntries(pod.Annotations, map[string]string{Mark(pd.Name): pd.ResourceVersion}, conflict)
		pod.Spec.Volumes, conflict = addElements(pod.Spec.Volumes, spec.Volumes, volumeName, conflict)
		for _, toleration := range spec.Tolerations {
			if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return taint(t) == taint(toleration) }) {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
			}
		}
		for i := range pod.Spec.Containers {
			container := &pod.Spec.Containers[i]
			if slices.Contains(brought, container.Name) {
				continue
			}
			container.Env, conflict = addElements(container.Env, spec.Env, envName, conflict)
			container.VolumeMounts, conflict = addElements(container.VolumeMounts, spec.VolumeMounts, mountPath, conflict)
			if len(spec.Args) > 0 && len(container.Args) == 0 && !args[container.Name] {
				container.Args = spec.Args
				args[container.Name] = true
			}
		}
		pod.Spec.InitContainers, conflict = addContainers(pod.Spec.InitContainers, spec.InitContainers, conflict)
		pod.Spec.Containers, conflict = addContainers(pod.Spec.Containers, spec.Sidecars, conflict)
		if spec.ServiceAccountName != "" {
			pod.Spec.ServiceAccountName = spec.ServiceAccountName
		}
	}
	return pod, conflict
}

// intendedChoice adds labels until no further PodDefault is selected. Those in mute add
// none.
func intendedChoice(pod *corev1.Pod, all []*kubeflowv1alpha1.PodDefault, mute map[string]bool) []*kubeflowv1alpha1.PodDefault {
	set := labels.Set{}
	for key, value := range pod.Labels {
		set[key] = value
	}
	chosen := map[string]*kubeflowv1alpha1.PodDefault{}
	for grown := true; grown; {
		grown = false
		var now []*kubeflowv1alpha1.PodDefault
		for _, pd := range all {
			selector, err := metav1.LabelSelectorAsSelector(&pd.Spec.Selector)
			if err == nil && chosen[pd.Name] == nil && selector.Matches(set) {
				now = append(now, pd)
			}
		}
		for _, pd := range now {
			chosen[pd.Name] = pd
			grown = true
		}
		for _, pd := range inNameOrder(chosen) {
			for key, value := range pd.Spec.Labels {
				if _, ok := set[key]; !ok && !mute[pd.Name] {
					set[key] = value
				}
			}
		}
	}
	return inNameOrder(chosen)
}

func inNameOrder(set map[string]*kubeflowv1alpha1.PodDefault) []*kubeflowv1alpha1.PodDefault {
	var list []*kubeflowv1alpha1.PodDefault
	for _, pd := range set {
		list = append(list, pd)
	}
	slices.SortFunc(list, func(a, b *kubeflowv1alpha1.PodDefault) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// intendedUsable drops, one by one, PodDefaults that mount what nobody brings.
func intendedUsable(pod *corev1.Pod, chosen []*kubeflowv1alpha1.PodDefault) []*kubeflowv1alpha1.PodDefault {
	for {
		volumes := map[string]bool{}
		for _, volume := range pod.Spec.Volumes {
			volumes[volume.Name] = true
		}
		for _, pd := range chosen {
			for _, volume := range pd.Spec.Volumes {
				volumes[volume.Name] = true
			}
		}
		broken := slices.IndexFunc(chosen, func(pd *kubeflowv1alpha1.PodDefault) bool {
			mounts := slices.Clone(pd.Spec.VolumeMounts)
			for _, container := range slices.Concat(pd.Spec.Sidecars, pd.Spec.InitContainers) {
				mounts = append(mounts, container.VolumeMounts...)
			}
			return slices.ContainsFunc(mounts, func(mount corev1.VolumeMount) bool { return !volumes[mount.Name] })
		})
		if broken < 0 {
			return chosen
		}
		chosen = slices.Delete(slices.Clone(chosen), broken, broken+1)
	}
}

func addEntries(to, entries map[string]string, conflict bool) (map[string]string, bool) {
	for key, value := range entries {
		if there, ok := to[key]; ok && there != value {
			conflict = true
			continue
		}
		if to == nil {
			to = map[string]string{}
		}
		to[key] = value
	}
	return to, conflict
}

func addElements[T any](to, elements []T, key func(T) string, conflict bool) ([]T, bool) {
	for _, element := range elements {
		i := slices.IndexFunc(to, func(other T) bool { return key(other) == key(element) })
		switch {
		case i < 0:
			to = append(to, element)
		case !reflect.DeepEqual(to[i], element):
			conflict = true
		}
	}
	return to, conflict
}

// addContainers takes a container for there if it has all that is wanted.
func addContainers(to, containers []corev1.Container, conflict bool) ([]corev1.Container, bool) {
	for _, container := range containers {
		i := slices.IndexFunc(to, func(other corev1.Container) bool { return other.Name == container.Name })
		if i < 0 {
			to = append(to, container)
			continue
		}
		there := to[i]
		has := there.Image == container.Image
		for _, env := range container.Env {
			has = has && slices.ContainsFunc(there.Env, func(other corev1.EnvVar) bool { return satisfies(other, env) })
		}
		for _, mount := range container.VolumeMounts {
			has = has && slices.ContainsFunc(there.VolumeMounts, func(other corev1.VolumeMount) bool {
				return other.Name == mount.Name && other.MountPath == mount.MountPath && (other.ReadOnly || !mount.ReadOnly)
			})
		}
		conflict = conflict || !has
	}
	return to, conflict
}

// satisfies is the subset rule for a variable inside a container: an empty value
// asks for nothing.
func satisfies(have, want corev1.EnvVar) bool {
	return have.Name == want.Name && (want.Value == "" || have.Value == want.Value) &&
		(want.ValueFrom == nil || reflect.DeepEqual(have.ValueFrom, want.ValueFrom))
}
