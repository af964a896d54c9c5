// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// systemClasses are the PriorityClasses that each cluster has. Others cannot begin with "system-".
var systemClasses = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// priority is the plugin Priority.
func (o *Objects) priority(a *Answer, p Pod) {
	const by = "Priority"
	reported := map[string]bool{}
	p.both(func(pod *corev1.Pod) {
		name := pod.Spec.PriorityClassName
		value, preemption := int32(0), corev1.PreemptLowerPriority
		class := o.priorityClasses[name]
		if name == "" {
			class = o.defaultClass()
		}
		system, isSystem := systemClasses[name]
		switch {
		case class != nil:
			value = class.Value
			if class.PreemptionPolicy != nil {
				preemption = *class.PreemptionPolicy
			}
		case isSystem:
			value = system
		case strings.HasPrefix(name, "system-"):
			a.deny(by, "no PriorityClass with name %s was found%s", name, p.setBy("/spec/priorityClassName"))
			return
		case name != "":
			if !reported[name] {
				reported[name] = true
				a.unknown("whether the PriorityClass %s exists%s: it is not in the files", name, p.setBy("/spec/priorityClassName"))
			}
			return
		}
		if pod.Spec.Priority != nil && *pod.Spec.Priority != value {
			a.deny(by, "spec.priority is %d, and the API server computes %d from the PriorityClass: omit it, or set priorityClassName", *pod.Spec.Priority, value)
		}
		if pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy != preemption {
			a.deny(by, "spec.preemptionPolicy is %s, and the API server computes %s from the PriorityClass: omit it", *pod.Spec.PreemptionPolicy, preemption)
		}
	})
}

// defaultClass returns the PriorityClass of pods that name none; nil if it is not in the files.
func (o *Objects) defaultClass() *schedulingv1.PriorityClass {
	var out *schedulingv1.PriorityClass
	for _, class := range o.priorityClasses {
		if class.GlobalDefault && (out == nil || class.Value < out.Value) {
			out = class
		}
	}
	return out
}

// runtimeClass is the plugin RuntimeClass.
func (o *Objects) runtimeClass(a *Answer, p Pod) {
	const by = "RuntimeClass"
	reported := map[string]bool{}
	p.both(func(pod *corev1.Pod) {
		var class *nodev1.RuntimeClass
		if name := pod.Spec.RuntimeClassName; name != nil {
			if class = o.runtimeClasses[*name]; class == nil {
				if !reported[*name] {
					reported[*name] = true
					a.unknown("whether the RuntimeClass %s exists%s: it is not in the files", *name, p.setBy("/spec/runtimeClassName"))
				}
				return
			}
		}
		if class == nil || class.Overhead == nil {
			if pod == p.Final && pod.Spec.Overhead != nil {
				a.deny(by, "spec.overhead is set, and no RuntimeClass of the pod has an overhead: omit it")
			}
		} else if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed) {
			a.deny(by, "spec.overhead differs from that of the RuntimeClass %s%s: omit it", class.Name, p.setBy("/spec/runtimeClassName"))
		}
		if class == nil || class.Scheduling == nil {
			return
		}
		for key, value := range class.Scheduling.NodeSelector {
			if has, ok := pod.Spec.NodeSelector[key]; ok && has != value {
				a.deny(by, "conflict: the RuntimeClass %s%s wants nodes with %s=%s, and spec.nodeSelector wants %s=%s", class.Name, p.setBy("/spec/runtimeClassName"), key, value, key, has)
			}
		}
	})
}
