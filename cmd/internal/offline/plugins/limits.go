// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/limitranger"
)

// Ranged reports whether a namespace has LimitRanges.
func (o *Objects) Ranged(namespace string) bool { return len(o.limitRanges[namespace]) > 0 }

// Default sets the requests of a pod's containers that follow from limits, and what the LimitRanges of the
// namespace give containers. It reports whether that depends on their order.
func (o *Objects) Default(namespace string, pod *corev1.Pod) (ambiguous bool) {
	each(pod, func(c *corev1.Container) {
		for name, limit := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				if c.Resources.Requests == nil {
					c.Resources.Requests = corev1.ResourceList{}
				}
				c.Resources.Requests[name] = limit.DeepCopy()
			}
		}
	})
	ambiguous, _ = limitranger.Set(pod, o.limitRanges[namespace])
	return ambiguous
}

// Limited returns a pod as webhooks get it, with what LimitRanges of the namespace give its containers. Nothing else
// is set or removed.
func (o *Objects) Limited(namespace string, raw jsontext.Value) (jsontext.Value, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, err
	}
	o.Default(namespace, pod)
	var whole map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err != nil {
		return nil, err
	}
	spec, _ := whole["spec"].(map[string]any)
	for list, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		elements, _ := spec[list].([]any)
		for i, element := range elements {
			if container, ok := element.(map[string]any); ok {
				container["resources"] = containers[i].Resources
			}
		}
	}
	if len(pod.Annotations) > 0 {
		metadata, _ := whole["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			whole["metadata"] = metadata
		}
		metadata["annotations"] = pod.Annotations
	}
	return json.Marshal(whole)
}

// each calls a function with each container.
func each(pod *corev1.Pod, f func(*corev1.Container)) {
	for i := range pod.Spec.Containers {
		f(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		f(&pod.Spec.InitContainers[i])
	}
}

// CheckLimits evaluates the plugin LimitRanger and the API server's validation of what it has set, and adds what they
// say to an answer.
func (o *Objects) CheckLimits(a *Answer, p Pod) {
	ranges := o.limitRanges[p.Namespace]
	if len(ranges) == 0 {
		return
	}
	pod := p.Final.DeepCopy()
	if o.Default(p.Namespace, pod) {
		a.unknown("which of the LimitRanges of the namespace %s sets the requests and limits of the containers: the API server may apply them in any order", p.Namespace)
		return
	}
	if problems := limitranger.Check(pod, ranges); len(problems) > 0 {
		a.deny("LimitRanger", "%s", strings.Join(problems, "; "))
	}
	if problems := limitranger.Validate(pod); len(problems) > 0 {
		a.deny("validation", "after the LimitRanges of the namespace %s: %v", p.Namespace, problems.ToAggregate())
	}
}
