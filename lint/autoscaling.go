// SPDX-License-Identifier: Apache-2.0

package lint

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// scaler is what sets the number of pods of a workload.
type scaler = typed[autoscalingv2.HorizontalPodAutoscaler]

// scale tells workloads of what scales them. Which pods there are is then not what the
// workload says, or said when it was read.
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

// fewest is the least number of pods that there may be, and what says so, with the JSON
// pointer to it.
func (w *workload) fewest() (int32, *Object, string) {
	if w.scaler != nil {
		return number(w.scaler.value.Spec.MinReplicas), w.scaler.Object, "/spec/minReplicas"
	}
	return w.replicas, w.Object, "/spec/replicas"
}
