// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func TestDecisionsAreCountedByObject(t *testing.T) {
	counts, err := NewCounts(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	index := NewIndex()
	for name, value := range map[string]string{"one": "1", "two": "2"} {
		index.Set(Compile(&kubeflowv1alpha1.PodDefault{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Generation: 7},
			Spec: kubeflowv1alpha1.PodDefaultSpec{
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{name: "true"}},
				Env:      []corev1.EnvVar{{Name: "A", Value: value}},
			},
		}))
	}
	webhook, err := New(index, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	handler := counts.Count(webhook.Handler)
	ask := func(labels string, dryRun bool) {
		t.Helper()
		raw := `{"metadata":{"name":"p","labels":{` + labels + `}},"spec":{"containers":[{"name":"main"}]}}`
		if _, err := handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
			Resource: podResource, Operation: admissionv1.Create, Namespace: "team-a", DryRun: &dryRun, Object: runtime.RawExtension{Raw: []byte(raw)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	ask(`"one":"true"`, false)
	ask(`"one":"true"`, true)
	ask(`"one":"true","two":"true"`, false)
	ask(`"none":"true"`, false)
	for series, want := range map[[3]string]float64{
		{"team-a", "one", "applied"}: 1, {"team-a", "two", "applied"}: 0, {"team-a", "two", "denied"}: 1,
	} {
		if got := testutil.ToFloat64(counts.decisions.WithLabelValues(series[:]...)); got != want {
			t.Errorf("%v is %v, want %v", series, got, want)
		}
	}
	for i := range mostCounted + 10 {
		counts.add("team-a", fmt.Sprint(i), "applied")
	}
	if got := testutil.ToFloat64(counts.decisions.WithLabelValues("", "", "applied")); got < 10 {
		t.Errorf("what is beyond the limit counts %v", got)
	}
}
