// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// BenchmarkHandle measures the handler alone, on the pod of a notebook as the API
// server sends it, with 11 PodDefaults in the namespace.
func BenchmarkHandle(b *testing.B) {
	raw := benchmarkPod(b)
	for _, bench := range []struct {
		name    string
		matches bool
	}{{"one matches", true}, {"none matches", false}} {
		b.Run(bench.name, func(b *testing.B) {
			webhook, err := New(benchmarkIndex(bench.matches), DefaultSettings())
			if err != nil {
				b.Fatal(err)
			}
			req := createRequest(raw)
			b.ReportAllocs()
			for b.Loop() {
				resp, err := webhook.Handler.Handle(b.Context(), req)
				if err != nil || (len(resp.Patch) > 0) != bench.matches {
					b.Fatalf("%v %+v", err, resp)
				}
			}
		})
	}
}

// BenchmarkSteps measures where the time of a pod that matches goes.
func BenchmarkSteps(b *testing.B) {
	raw := benchmarkPod(b)
	settings := DefaultSettings()
	meta, _ := readMetadata(raw)
	chosen, err := benchmarkIndex(true).Select(b.Context(), meta.namespace, meta.labels)
	if err != nil {
		b.Fatal(err)
	}
	pod := func() *pod {
		p, _ := readPod(raw, meta, newBounds(b.Context()))
		return p
	}
	b.Run("metadata", func(b *testing.B) {
		for b.Loop() {
			readMetadata(raw)
		}
	})
	b.Run("pod", func(b *testing.B) {
		for b.Loop() {
			pod()
		}
	})
	b.Run("pod and merge", func(b *testing.B) {
		for b.Loop() {
			mergeAll(pod(), choice{objects: chosen}, nil, &settings)
		}
	})
	b.Run("response", func(b *testing.B) {
		m := mergeAll(pod(), choice{objects: chosen}, nil, &settings)
		for b.Loop() {
			m.response(false)
		}
	})
}

func benchmarkPod(b *testing.B) []byte {
	b.Helper()
	data, err := os.ReadFile("../../../test/bench/testdata/notebook.json")
	if err != nil {
		b.Fatal(err)
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(data, review); err != nil {
		b.Fatal(err)
	}
	return review.Request.Object.Raw
}

func benchmarkIndex(matches bool) *Index {
	index := NewIndex()
	for i := range 11 {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-vision", Name: fmt.Sprintf("number-%d", i), ResourceVersion: "12345"}}
		pd.Spec.Selector.MatchLabels = map[string]string{fmt.Sprintf("number-%d", i): "true"}
		if matches && i == 0 {
			pd.Spec.Selector.MatchLabels = nil
		}
		pd.Spec.Env = []corev1.EnvVar{{Name: "FROM_PODDEFAULT", Value: "/secret/gcp/user-gcp-sa.json"}}
		pd.Spec.Volumes = []corev1.Volume{{Name: "from-poddefault", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "user-gcp-sa"}}}}
		pd.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "from-poddefault", MountPath: "/secret/gcp", ReadOnly: true}}
		index.Set(Compile(pd))
	}
	return index
}
