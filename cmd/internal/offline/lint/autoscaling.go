// SPDX-License-Identifier: Apache-2.0

package lint

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// scaler scales the pods of a workload.
type scaler = typed[autoscalingv2.HorizontalPodAutoscaler]

// scale links workloads to their scalers. The number of pods then differs from the
// workload's own replicas.
func (in *Inventory) scale() {
	for _, s := range in.scalers {
		target := s.value.Spec.ScaleTargetRef
		for _, w := range in.workloadsByNamespace[s.Namespace] {
			if w.Kind == target.Kind && w.Name == target.Name {
				w.scaler = s
			}
		}
	}
}

// fewest returns the minimum number of pods, and the object that sets it with the JSON
// pointer to the field.
func (w *workload) fewest() (int32, *Object, string) {
	if w.scaler != nil {
		return number(w.scaler.value.Spec.MinReplicas), w.scaler.Object, "/spec/minReplicas"
	}
	return w.replicas, w.Object, "/spec/replicas"
}
