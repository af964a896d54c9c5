// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// quota is the plugin ResourceQuota, for a pod with its defaults.
func (o *Objects) quota(a *Answer, namespace string, pod *corev1.Pod) {
	quotas := o.quotas[namespace]
	if len(quotas) == 0 {
		a.Open.add(openQuotas, namespace)
		return
	}
	usage := usageOf(pod)
	for _, q := range quotas {
		hard := q.Status.Hard
		if hard == nil { // as its controller sets it
			hard = q.Spec.Hard
		}
		counted := slices.DeleteFunc(names(hard), func(name corev1.ResourceName) bool { return !ofPods(name) })
		if len(counted) == 0 {
			continue
		}
		matches, known := matchesScopes(q, pod)
		switch {
		case !known || pod.Spec.Resources != nil && matches:
			a.unknown("whether the ResourceQuota %s of the namespace %s covers the pod, and has room for it", q.Name, namespace)
			continue
		case !matches:
			continue
		}
		if missing := lacking(pod, counted); missing != "" {
			a.deny("ResourceQuota", "failed quota: %s: it demands %s", q.Name, missing)
			continue
		}
		for _, name := range counted {
			request, asks := usage[name]
			if !asks || request.IsZero() {
				continue
			}
			limit := hard[name]
			used, counts := q.Status.Used[name]
			sum := used.DeepCopy()
			sum.Add(request)
			switch {
			case sum.Cmp(limit) > 0:
				a.deny("ResourceQuota", "exceeded quota: %s: of %s, the pod requests %s, %s are used, and the limit is %s", q.Name, name, request.String(), used.String(), limit.String())
			case !counts:
				a.unknown("whether the ResourceQuota %s of the namespace %s has room for the pod: its status does not say how much of %s is used; 'kubectl get resourcequota -o yaml' has it", q.Name, namespace, name)
			default:
				continue
			}
			break
		}
	}
}

// Resources of which a quota counts those of pods: k8s.io/kubernetes/pkg/quota/v1/evaluator/core. Containers must have
// those of demanded.
var (
	demanded = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	}
	counted = append([]corev1.ResourceName{
		"count/pods", corev1.ResourcePods, corev1.ResourceEphemeralStorage, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsEphemeralStorage,
	}, demanded...)
)

// ofPods reports whether a quota of a resource counts pods.
func ofPods(name corev1.ResourceName) bool {
	if slices.Contains(counted, name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix) {
		return true
	}
	rest, requests := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return requests && extended(corev1.ResourceName(rest))
}

func extended(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix) || meta.Extended(name)
}

// usageOf returns what a pod uses of what quotas count.
func usageOf(pod *corev1.Pod) corev1.ResourceList {
	options := helpers.PodResourcesOptions{}
	usage := ofResources(helpers.PodRequests(pod, options), helpers.PodLimits(pod, options))
	usage["count/pods"], usage[corev1.ResourcePods] = resource.MustParse("1"), resource.MustParse("1")
	return usage
}

func ofResources(requests, limits corev1.ResourceList) corev1.ResourceList {
	usage := corev1.ResourceList{}
	for name, request := range requests {
		prefixed := corev1.ResourceName(corev1.DefaultResourceRequestsPrefix + string(name))
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			usage[name], usage[prefixed] = request, request
		case extended(name):
			usage[prefixed] = request
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if limit, ok := limits[name]; ok {
			usage["limits."+name] = limit
		}
	}
	return usage
}

// lacking says which containers lack what a quota demands of each; empty if none does.
func lacking(pod *corev1.Pod, counted []corev1.ResourceName) string {
	var texts []string
	for _, name := range counted {
		if !slices.Contains(demanded, name) {
			continue
		}
		var lack []string
		each(pod, func(c *corev1.Container) {
			if _, ok := ofResources(c.Resources.Requests, c.Resources.Limits)[name]; !ok {
				lack = append(lack, c.Name)
			}
		})
		if len(lack) > 0 {
			texts = append(texts, fmt.Sprintf("%s of each container, and there is none in %s", name, strings.Join(lack, ", ")))
		}
	}
	return strings.Join(texts, "; ")
}

// matchesScopes reports whether a quota covers a pod, and whether that is known.
func matchesScopes(q *corev1.ResourceQuota, pod *corev1.Pod) (matches, known bool) {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		scopes = append(scopes, q.Spec.ScopeSelector.MatchExpressions...)
	}
	known = true
	for _, scope := range scopes {
		in, sure := inScope(scope, pod)
		if sure && !in {
			return false, true
		}
		known = known && sure
	}
	return true, known
}

// inScope reports whether a pod is in a scope, and whether that is known.
func inScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) (in, known bool) {
	deadline := pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return deadline, true
	case corev1.ResourceQuotaScopeNotTerminating:
		return !deadline, true
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod), pod.Spec.Resources == nil
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod), pod.Spec.Resources == nil
	case corev1.ResourceQuotaScopePriorityClass:
		name := pod.Spec.PriorityClassName
		switch scope.Operator {
		case corev1.ScopeSelectorOpExists:
			return name != "", true
		case corev1.ScopeSelectorOpDoesNotExist:
			return name == "", true
		case corev1.ScopeSelectorOpIn:
			return name != "" && slices.Contains(scope.Values, name), true
		case corev1.ScopeSelectorOpNotIn:
			return name == "" || !slices.Contains(scope.Values, name), true
		}
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return false, pod.Spec.Affinity == nil
	}
	return false, false
}

// bestEffort reports whether no container of a pod requests or limits CPU or memory.
func bestEffort(pod *corev1.Pod) bool {
	found := false
	each(pod, func(c *corev1.Container) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				quantity := list[name]
				found = found || quantity.Sign() > 0
			}
		}
	})
	return !found
}

func names(list corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(list)) }
