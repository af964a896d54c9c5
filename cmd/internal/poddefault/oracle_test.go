// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// intend returns what the webhook should make of a pod, in the simplest possible
// implementation: on typed structs, for the fields and policies that property_test.go
// draws, with values without defaults. It returns whether there is a conflict instead.
func intend(before *corev1.Pod, all []*kubeflowv1alpha1.PodDefault) (pod *corev1.Pod, conflict bool) {
	pod = before.DeepCopy()
	var chosen []*kubeflowv1alpha1.PodDefault
	var labels map[string]string
	for mute := map[string]bool{}; ; {
		before := len(mute)
		var selected []*kubeflowv1alpha1.PodDefault
		selected, labels = intendedChoice(pod, all, mute)
		chosen = intendedUsable(pod, selected)
		for _, pd := range selected {
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
	o := oracle{chosen: chosen, applied: func(pd *kubeflowv1alpha1.PodDefault) bool {
		_, marked := before.Annotations[meta.Mark(pd.Name)]
		return marked
	}, marked: func(pd *kubeflowv1alpha1.PodDefault) bool {
		mark, marked := before.Annotations[meta.Mark(pd.Name)]
		revision := revisionsIn(before.Annotations[RevisionsAnnotation])[pd.Name]
		return marked && revision != RevisionOf(Meaning(&pd.Spec)) && (revision != "" || mark != pd.ResourceVersion)
	}}
	groups := map[string]int{}
	for _, pd := range chosen {
		groups[pd.Spec.ExclusiveGroup]++
		o.conflict = o.conflict || pd.Spec.ExclusiveGroup != "" && groups[pd.Spec.ExclusiveGroup] > 1
	}
	for _, pd := range chosen {
		for key, value := range pd.Spec.Labels {
			_, there := before.Labels[key]
			kept := there && o.marked(pd)
			o.conflict = o.conflict || labels[key] != value && !kept && (pd.Spec.ConflictPolicy == "" || pd.Spec.ConflictPolicy == kubeflowv1alpha1.ConflictDeny)
		}
		if pod.Labels == nil && len(pd.Spec.Labels) > 0 {
			pod.Labels = map[string]string{}
		}
		for key := range pd.Spec.Labels {
			pod.Labels[key] = labels[key]
		}
	}
	pod.Annotations = settleMap(&o, pod.Annotations, func(s *kubeflowv1alpha1.PodDefaultSpec) map[string]string { return s.Annotations })
	pod.Spec.NodeSelector = settleMap(&o, pod.Spec.NodeSelector, func(s *kubeflowv1alpha1.PodDefaultSpec) map[string]string { return s.NodeSelector })
	for _, pd := range chosen {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		if _, marked := pod.Annotations[meta.Mark(pd.Name)]; !marked {
			pod.Annotations[meta.Mark(pd.Name)] = pd.ResourceVersion
		}
		for _, toleration := range pd.Spec.Tolerations {
			if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return taint(t) == taint(toleration) }) {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
			}
		}
	}
	pod.Spec.Volumes = settleList(&o, pod.Spec.Volumes, volumeName, equal, func(s *kubeflowv1alpha1.PodDefaultSpec) []corev1.Volume { return s.Volumes })
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if !slices.Contains(brought, container.Name) {
			container.Env = settleList(&o, container.Env, envName, equal, func(s *kubeflowv1alpha1.PodDefaultSpec) []corev1.EnvVar { return s.Env })
			container.VolumeMounts = settleList(&o, container.VolumeMounts, mountPath, equal, func(s *kubeflowv1alpha1.PodDefaultSpec) []corev1.VolumeMount { return s.VolumeMounts })
			args := settle(&o, container.Args, kubeflowv1alpha1.ConflictKeepPod, equal, func(s *kubeflowv1alpha1.PodDefaultSpec) []string { return s.Args })
			container.Args = args
		}
	}
	o.containers = true
	containerName := func(c corev1.Container) string { return c.Name }
	pod.Spec.InitContainers = settleList(&o, pod.Spec.InitContainers, containerName, hasAll, func(s *kubeflowv1alpha1.PodDefaultSpec) []corev1.Container { return s.InitContainers })
	pod.Spec.Containers = settleList(&o, pod.Spec.Containers, containerName, hasAll, func(s *kubeflowv1alpha1.PodDefaultSpec) []corev1.Container { return s.Sidecars })
	o.containers = false
	pod.Spec.ServiceAccountName = settle(&o, pod.Spec.ServiceAccountName, kubeflowv1alpha1.ConflictOverride, equal, func(s *kubeflowv1alpha1.PodDefaultSpec) string { return s.ServiceAccountName })
	pod.Spec.SchedulerName = settle(&o, pod.Spec.SchedulerName, "", equal, func(s *kubeflowv1alpha1.PodDefaultSpec) string { return s.SchedulerName })
	pod.Spec.HostUsers = settle(&o, pod.Spec.HostUsers, "", equal, func(s *kubeflowv1alpha1.PodDefaultSpec) *bool { return s.HostUsers })
	pod.Spec.ResourceClaims = settleList(&o, pod.Spec.ResourceClaims, claimName, equal, func(s *kubeflowv1alpha1.PodDefaultSpec) []corev1.PodResourceClaim { return s.ResourceClaims })
	return pod, o.conflict
}

// oracle resolves what several objects and the pod want in one place.
type oracle struct {
	chosen   []*kubeflowv1alpha1.PodDefault
	marked   func(*kubeflowv1alpha1.PodDefault) bool // by another version of it
	applied  func(*kubeflowv1alpha1.PodDefault) bool // by any version of it
	conflict bool
	// containers are not what the pod came with once they have been replaced, even by the same.
	containers bool
}

// settle returns the value of one place; the zero value means none. Each object is tried, in
// order, on what those before have left. Unwritten is the policy of objects without one.
func settle[T any](o *oracle, there T, unwritten kubeflowv1alpha1.ConflictPolicy, satisfied func(have, want T) bool, of func(*kubeflowv1alpha1.PodDefaultSpec) T) T {
	policy := func(pd *kubeflowv1alpha1.PodDefault) kubeflowv1alpha1.ConflictPolicy {
		return cmp.Or(pd.Spec.ConflictPolicy, unwritten)
	}
	came, own := there, true // it is what the pod came with
	for i, pd := range o.chosen {
		want := of(&pd.Spec)
		overridden := slices.ContainsFunc(o.chosen[i+1:], func(later *kubeflowv1alpha1.PodDefault) bool {
			return o.applied(later) && policy(later) == kubeflowv1alpha1.ConflictOverride && !reflect.ValueOf(of(&later.Spec)).IsZero()
		})
		switch p := policy(pd); {
		case reflect.ValueOf(want).IsZero():
		case reflect.ValueOf(there).IsZero():
			there, own = want, false
		case satisfied(there, want), own && overridden, p == kubeflowv1alpha1.ConflictKeepPod:
		case p == kubeflowv1alpha1.ConflictOverride:
			if there, own = want, !o.containers && !reflect.ValueOf(came).IsZero() && satisfied(came, want); own { // again
				there = came
			}
		case own && o.marked(pd):
		default:
			o.conflict = true
		}
	}
	return there
}

func settleMap(o *oracle, there map[string]string, of func(*kubeflowv1alpha1.PodDefaultSpec) map[string]string) map[string]string {
	var keys []string
	for _, pd := range o.chosen {
		for key := range of(&pd.Spec) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		var present *string
		if value, ok := there[key]; ok {
			present = &value
		}
		if there == nil {
			there = map[string]string{}
		}
		there[key] = *settle(o, present, "", func(have, want *string) bool { return *have == *want }, func(s *kubeflowv1alpha1.PodDefaultSpec) *string {
			if value, ok := of(s)[key]; ok {
				return &value
			}
			return nil
		})
	}
	return there
}

func settleList[T any](o *oracle, there []T, key func(T) string, satisfied func(have, want T) bool, of func(*kubeflowv1alpha1.PodDefaultSpec) []T) []T {
	find := func(list []T, k string) *T {
		if i := slices.IndexFunc(list, func(e T) bool { return key(e) == k }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	var done []string
	for _, pd := range o.chosen {
		for _, element := range of(&pd.Spec) {
			k := key(element)
			if slices.Contains(done, k) {
				continue
			}
			done = append(done, k)
			present := find(there, k)
			settled := settle(o, present, "", func(have, want *T) bool { return satisfied(*have, *want) },
				func(s *kubeflowv1alpha1.PodDefaultSpec) *T { return find(of(s), k) })
			if present == nil {
				there = append(there, *settled)
			} else {
				*present = *settled
			}
		}
	}
	return there
}

func equal[T any](have, want T) bool { return reflect.DeepEqual(have, want) }

// intendedChoice adds labels until no further PodDefault is selected. PodDefaults in
// mute add none.
func intendedChoice(pod *corev1.Pod, all []*kubeflowv1alpha1.PodDefault, mute map[string]bool) ([]*kubeflowv1alpha1.PodDefault, map[string]string) {
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
		for _, pd := range inIntendedOrder(chosen) {
			for key, value := range pd.Spec.Labels {
				if _, ok := set[key]; !ok && !mute[pd.Name] {
					set[key] = value
				}
			}
		}
	}
	return inIntendedOrder(chosen), set
}

func inIntendedOrder(set map[string]*kubeflowv1alpha1.PodDefault) []*kubeflowv1alpha1.PodDefault {
	var list []*kubeflowv1alpha1.PodDefault
	for _, pd := range set {
		list = append(list, pd)
	}
	slices.SortFunc(list, func(a, b *kubeflowv1alpha1.PodDefault) int {
		return cmp.Or(cmp.Compare(a.Spec.Priority, b.Spec.Priority), strings.Compare(a.Name, b.Name))
	})
	return list
}

// intendedUsable drops, one by one, PodDefaults that mount a missing volume.
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

// hasAll reports whether a container has everything wanted.
func hasAll(there, container corev1.Container) bool {
	has := there.Image == container.Image
	for _, env := range container.Env {
		has = has && slices.ContainsFunc(there.Env, func(other corev1.EnvVar) bool { return satisfies(other, env) })
	}
	for _, mount := range container.VolumeMounts {
		has = has && slices.ContainsFunc(there.VolumeMounts, func(other corev1.VolumeMount) bool {
			return other.Name == mount.Name && other.MountPath == mount.MountPath && (other.ReadOnly || !mount.ReadOnly)
		})
	}
	return has
}

// satisfies applies the subset rule to a variable inside a container: an empty value
// requires nothing.
func satisfies(have, want corev1.EnvVar) bool {
	return have.Name == want.Name && (want.Value == "" || have.Value == want.Value) &&
		(want.ValueFrom == nil || reflect.DeepEqual(have.ValueFrom, want.ValueFrom))
}
