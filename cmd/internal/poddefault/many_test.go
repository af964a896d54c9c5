// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
)

// TestThousandsOfLabelsAndVariables is close to the limits.
func TestThousandsOfLabelsAndVariables(t *testing.T) {
	const labels, variables, containers = 2000, 800, 20
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: "many", ResourceVersion: "1"}}
	pd.Spec.Selector.MatchLabels = make(map[string]string, labels)
	for i := range labels {
		pd.Spec.Selector.MatchLabels[fmt.Sprint("l", i)] = "true"
	}
	pd.Spec.Labels, pd.Spec.Annotations = map[string]string{}, map[string]string{}
	for i := range variables {
		pd.Spec.Env = append(pd.Spec.Env, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: "1"})
		pd.Spec.Labels[fmt.Sprint("added", i)] = "1"
		pd.Spec.Annotations[fmt.Sprint("added", i)] = "1"
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: pd.Spec.Selector.MatchLabels, Annotations: map[string]string{}}}
	for i := range variables {
		pod.Annotations[fmt.Sprint("there", i)] = "1"
	}
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprint("c", i)}
		for j := range variables / 2 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("V", j), Value: "1"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	index := indexOf(pd)
	resp := handleFrom(t, encodeJSON(t, pod), index)
	if !resp.Allowed || len(resp.Patch) != 2*variables+containers+3 {
		t.Errorf("allowed is %v, %d operations: %+v", resp.Allowed, len(resp.Patch), resp.Status)
	}
	delete(pod.Labels, "l0")
	if resp := handleFrom(t, encodeJSON(t, pod), index); !resp.Allowed || len(resp.Patch) > 0 {
		t.Errorf("a pod that lacks one of the labels got %d operations", len(resp.Patch))
	}
}
