// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// A refusedPodDefault is valid by Kubeflow's definition, and not by ours.
type refusedPodDefault struct {
	object *kubeflowv1alpha1.PodDefault
	field  string
}

func podDefaultsThatOursRefuse(namespace string) []refusedPodDefault {
	of := func(name, field string, spec kubeflowv1alpha1.PodDefaultSpec) refusedPodDefault {
		spec.Selector.MatchLabels = map[string]string{"use": name}
		return refusedPodDefault{podDefault(namespace, name, spec), field}
	}
	selector := of("selector", "spec.selector.matchExpressions[0].operator", kubeflowv1alpha1.PodDefaultSpec{})
	selector.object.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}
	return []refusedPodDefault{
		selector,
		of("volume", "spec.volumes[0].name", kubeflowv1alpha1.PodDefaultSpec{Volumes: []corev1.Volume{{Name: "My_Volume"}}}),
		of("toleration", "spec.tolerations[0].operator", kubeflowv1alpha1.PodDefaultSpec{Tolerations: []corev1.Toleration{{Key: "a", Operator: "Maybe"}}}),
		of("variable", "spec.env[0].name", kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "A=B", Value: "hunter2"}}}),
	}
}

// refusedPodDefaults are the fields that lint lists of the PodDefaults of a namespace, by name.
func (e *env) refusedPodDefaults(t *testing.T, namespace string) map[string][]string {
	t.Helper()
	status, stdout, stderr := e.look(t, "lint", "--cluster", "--kubeconfig", e.kubeconfig, "--rule", "poddefault-refused", "-o", "json")
	var report struct {
		Findings []struct{ Object, Message string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 2 || strings.Contains(stdout, "hunter2") {
		t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	out := map[string][]string{}
	for _, f := range report.Findings {
		if name, here := strings.CutPrefix(f.Object, "PodDefault/"+namespace+"/"); here {
			at, _, _ := strings.Cut(f.Message, ": ")
			out[name] = append(out[name], at)
		}
	}
	return out
}
