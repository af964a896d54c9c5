// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

func workloadProbes() Rule {
	return Rule{
		ID: "workload-probes", Group: groupWorkload, Severities: []Severity{Warning}, Source: "practice",
		What: "The container has a readiness probe that differs from its liveness probe.",
		Why:  "Without one, calls go to a server that does not listen yet. If both run the same check, the kubelet restarts a server that is only draining.",
		Fix:  "Add a readiness probe on the port of the webhooks, and let the liveness probe check only that the process is alive.",
		check: func(c *checker) {
			for _, b := range c.oncePerContainer() {
				container, _ := b.targetPort()
				switch ready, live := container.ReadinessProbe, container.LivenessProbe; {
				case ready == nil:
					c.object(b.workload.Object, Warning, b.workload.path, "%s has no readiness probe", container.Name)
				case live != nil && reflect.DeepEqual(ready.ProbeHandler, live.ProbeHandler):
					c.object(b.workload.Object, Warning, b.workload.path, "readiness and liveness of %s are the same check", container.Name)
				}
			}
		},
	}
}

// oncePerContainer returns the servers with a known container, one per container.
func (c *checker) oncePerContainer() []*backend {
	var out []*backend
	seen := map[*corev1.Container]bool{}
	for _, b := range c.backendsOr() {
		if container, _ := b.targetPort(); container != nil && !seen[container] {
			seen[container] = true
			out = append(out, b)
		}
	}
	return out
}
