// SPDX-License-Identifier: Apache-2.0

// Package limitranger is kube-apiserver's plugin LimitRanger for pods: it sets the requests and limits that
// a namespace's LimitRanges give containers, and finds what violates them:
// k8s.io/kubernetes/plugin/pkg/admission/limitranger, which cannot be imported.
package limitranger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotation says what the plugin has set.
const Annotation = "kubernetes.io/limit-ranger"

// Default sets the defaults of a LimitRange, which the API server sets when it is written:
// k8s.io/kubernetes/pkg/apis/core/v1/defaults.go.
func Default(limits *corev1.LimitRange) {
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		if item.Type == corev1.LimitTypeContainer {
			item.Default = merged(item.Default, item.Max)
			item.DefaultRequest = merged(item.DefaultRequest, item.Default, item.Min)
		}
	}
}

// merged returns the union of lists. The first that has a resource decides.
func merged(lists ...corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range slices.Backward(lists) {
		maps.Copy(out, list)
	}
	return out
}

// Set sets in a pod what the LimitRanges of its namespace give its containers. The API server applies
// several LimitRanges in any order: it is reported whether the order decides on resources, and on the annotation.
func Set(pod *corev1.Pod, all []*corev1.LimitRange) (resources, annotation bool) {
	var outcomes []*corev1.Pod
	for first := range all {
		outcome := pod.DeepCopy()
		for i := range all {
			set(outcome, all[(first+i)%len(all)])
		}
		outcomes = append(outcomes, outcome)
	}
	for _, outcome := range outcomes {
		resources = resources || !same(outcome, outcomes[0])
		annotation = annotation || outcome.Annotations[Annotation] != outcomes[0].Annotations[Annotation]
	}
	if len(outcomes) > 0 {
		*pod = *outcomes[0]
	}
	return resources, annotation
}

// same reports whether the containers of two outcomes have the same resources.
func same(a, b *corev1.Pod) bool {
	equal := func(a, b corev1.Container) bool {
		quantity := func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }
		return maps.EqualFunc(a.Resources.Limits, b.Resources.Limits, quantity) && maps.EqualFunc(a.Resources.Requests, b.Resources.Requests, quantity)
	}
	return slices.EqualFunc(a.Spec.Containers, b.Spec.Containers, equal) && slices.EqualFunc(a.Spec.InitContainers, b.Spec.InitContainers, equal)
}

func set(pod *corev1.Pod, limits *corev1.LimitRange) {
	var given corev1.ResourceRequirements
	for _, item := range limits.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			given.Limits, given.Requests = merged(item.Default, given.Limits), merged(item.DefaultRequest, given.Requests)
		}
	}
	var done []string
	for _, group := range []struct {
		what       string
		containers []corev1.Container
	}{{"container", pod.Spec.Containers}, {"init container", pod.Spec.InitContainers}} {
		for i := range group.containers {
			c := &group.containers[i]
			done = fill(&c.Resources.Requests, given.Requests, " request for "+group.what+" "+c.Name, done)
			done = fill(&c.Resources.Limits, given.Limits, " limit for "+group.what+" "+c.Name, done)
		}
	}
	if len(done) > 0 {
		annotations := maps.Clone(pod.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[Annotation] = "LimitRanger plugin set: " + strings.Join(done, "; ")
		pod.Annotations = annotations
	}
}

// fill sets what a list lacks.
func fill(list *corev1.ResourceList, given corev1.ResourceList, of string, done []string) []string {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := (*list)[name]; !ok {
			missing = append(missing, string(name))
		}
	}
	if len(missing) == 0 {
		return done
	}
	*list = merged(*list, given)
	return append(done, strings.Join(missing, ", ")+of)
}

// Check returns how a pod violates LimitRanges, in the plugin's words, sorted.
func Check(pod *corev1.Pod, all []*corev1.LimitRange) []string {
	var out []string
	for _, limits := range all {
		for _, item := range limits.Spec.Limits {
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
					out = append(out, check(item, c.Resources.Requests, c.Resources.Limits)...)
				}
			case corev1.LimitTypePod:
				out = append(out, check(item, total(pod, requests), total(pod, limitsOf))...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Validate returns the requests of a pod's containers that exceed their limits, which LimitRanges may have
// set. The API server refuses such a pod.
func Validate(pod *corev1.Pod) field.ErrorList {
	var out field.ErrorList
	for name, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			for _, resource := range slices.Sorted(maps.Keys(r.Requests)) {
				request, limit := r.Requests[resource], r.Limits[resource]
				if _, limited := r.Limits[resource]; limited && request.Cmp(limit) > 0 {
					out = append(out, field.Invalid(field.NewPath("spec", name).Index(i).Child("resources", "requests"), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", resource, limit.String())))
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return out
}

func requests(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
func limitsOf(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }

// check returns how requests and limits violate an item.
func check(item corev1.LimitRangeItem, requests, limits corev1.ResourceList) []string {
	var out []string
	say := func(name corev1.ResourceName, format string, args ...any) {
		out = append(out, fmt.Sprintf(format, append([]any{name, item.Type}, args...)...))
	}
	for name, least := range item.Min {
		request, limit := requests[name], limits[name]
		_, requested := requests[name]
		_, limited := limits[name]
		switch {
		case !requested:
			say(name, "minimum %s usage per %s is %s.  No request is specified", least.String())
		case request.Cmp(least) < 0:
			say(name, "minimum %s usage per %s is %s, but request is %s", least.String(), request.String())
		case limited && limit.Cmp(least) < 0:
			say(name, "minimum %s usage per %s is %s, but limit is %s", least.String(), limit.String())
		}
	}
	for name, most := range item.Max {
		request, limit := requests[name], limits[name]
		_, limited := limits[name]
		switch {
		case !limited:
			say(name, "maximum %s usage per %s is %s.  No limit is specified", most.String())
		case limit.Cmp(most) > 0:
			say(name, "maximum %s usage per %s is %s, but limit is %s", most.String(), limit.String())
		case request.Cmp(most) > 0:
			say(name, "maximum %s usage per %s is %s, but request is %s", most.String(), request.String())
		}
	}
	for name, most := range item.MaxLimitRequestRatio {
		request, limit := requests[name], limits[name]
		switch {
		case request.IsZero():
			say(name, "%s max limit to request ratio per %s is %s, but no request is specified or request is 0", most.String())
		case limit.IsZero():
			say(name, "%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", most.String())
		case ratio(limit, request)*1000 > float64(most.MilliValue()):
			say(name, "%s max limit to request ratio per %s is %s, but provided ratio is %f", most.String(), ratio(limit, request))
		}
	}
	return out
}

func ratio(limit, request resource.Quantity) float64 {
	if limit.Value() <= resource.MaxMilliValue && request.Value() <= resource.MaxMilliValue {
		return float64(limit.MilliValue()) / float64(request.MilliValue())
	}
	return float64(limit.Value()) / float64(request.Value())
}

// total returns what a pod needs: its containers together, or an init container with the sidecars before it,
// if that is more. What is set for the whole pod replaces it.
func total(pod *corev1.Pod, of func(corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, starting := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		add(sum, of(c.Resources))
	}
	for _, c := range pod.Spec.InitContainers {
		needs := corev1.ResourceList{}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sum, of(c.Resources))
			add(sidecars, of(c.Resources))
		} else {
			add(needs, of(c.Resources))
		}
		add(needs, sidecars)
		raise(starting, needs)
	}
	raise(sum, starting)
	if pod.Spec.Resources != nil {
		for name, quantity := range of(*pod.Spec.Resources) {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				sum[name] = quantity
			}
		}
	}
	return sum
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := quantity.DeepCopy()
		sum.Add(to[name])
		to[name] = sum
	}
}

func raise(to, other corev1.ResourceList) {
	for name, quantity := range other {
		if has, ok := to[name]; !ok || quantity.Cmp(has) > 0 {
			to[name] = quantity
		}
	}
}
