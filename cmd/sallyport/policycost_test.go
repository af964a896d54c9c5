// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/export"
)

// TestManyObjectsAndLargePodsAreWithinTheBudget checks the API server's cost limits for
// expressions: thirty PodDefaults with ten variables each, and a pod with ten containers of
// fifty variables.
func TestManyObjectsAndLargePodsAreWithinTheBudget(t *testing.T) {
	var pds []*kubeflowv1alpha1.PodDefault
	for i := range 30 {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("pd-%02d", i)}}
		for j := range 10 {
			pd.Spec.Env = append(pd.Spec.Env, corev1.EnvVar{Name: fmt.Sprintf("V_%d_%d", i, j), Value: "1"})
		}
		pds = append(pds, pd)
	}
	exported, err := export.Export(pds, poddefault.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compilePolicies(exported, defaultPod)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "large"}}
	for i := range 10 {
		c := corev1.Container{Name: fmt.Sprintf("main-%d", i), Image: "i"}
		for j := range 50 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("OWN_%d", j), Value: "1"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	got, err := compiled.mutate(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Spec.Containers[9].Env); n != 350 {
		t.Errorf("%d variables, want 350", n)
	}
	if message, err := compiled.refusal(t.Context(), got); err != nil || message != "" {
		t.Errorf("the pod is refused: %s %v", message, err)
	}
}
