// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Includes reports whether a pod like this stored one, created now, would get the revision
// of c. While c is rolled out, the present step decides that. What the pod carries does not
// count: its annotations, and its managedFields too, can be written by its owner. A
// percentage of single pods includes all pods with generated names, because it was decided
// for their requests, which are gone.
func Includes(ctx context.Context, source Source, c *Compiled, pod *metav1.ObjectMeta) (bool, error) {
	md := &metadata{
		labels: labelsOf(pod.Labels), annotations: labelsOf(pod.Annotations), workload: Workload{unit: WorkloadOf(pod)},
		name: pod.Name, history: &history{}, unplaced: pod.GenerateName != "",
	}
	if !md.unplaced {
		md.raw = append(append([]byte(`{"name":`), quote(pod.Name)...), '}')
	}
	due, _, err := dueTo(ctx, md, source, pod.Namespace)
	return slices.ContainsFunc(due, func(other *Compiled) bool { return other.title == c.title && other.revision == c.revision }), err
}
