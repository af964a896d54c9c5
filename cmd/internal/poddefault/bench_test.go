// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/wire"
)

// BenchmarkHandle measures the handler alone.
func BenchmarkHandle(b *testing.B) {
	benchmarkPods(b, func(b *testing.B, webhook admission.Webhook, pod []byte, changes bool) {
		req := createRequest(pod)
		b.ReportAllocs()
		for b.Loop() {
			resp, err := webhook.Handler.Handle(b.Context(), req)
			if err != nil || (len(resp.Patch) > 0) != changes {
				b.Fatalf("%v %+v", err, resp)
			}
		}
	})
}

// BenchmarkReview measures whole reviews, from the body to the answer.
func BenchmarkReview(b *testing.B) {
	benchmarkPods(b, func(b *testing.B, webhook admission.Webhook, pod []byte, _ bool) {
		reviews, err := wire.NewAdmission(webhook, wire.AdmissionOptions{})
		if err != nil {
			b.Fatal(err)
		}
		review := recordedReview(b)
		review.Request.Object.Raw = pod
		body, err := json.Marshal(review)
		if err != nil {
			b.Fatal(err)
		}
		w, header := discard{}, http.Header{"Content-Type": {"application/json"}}
		b.ReportAllocs()
		for b.Loop() {
			reviews.Answer(b.Context(), w, header, body)
		}
	})
}

// benchmarkPods measures the webhook with the pod of a notebook as the API server sends it and with
// larger ones, beside at least 11 PodDefaults in the namespace.
func benchmarkPods(b *testing.B, measure func(b *testing.B, webhook admission.Webhook, pod []byte, changes bool)) {
	notebook := benchmarkPod(b)
	for _, bench := range []struct {
		name    string
		pod     []byte
		matches int
	}{
		{"one matches", notebook, 1},
		{"none matches", notebook, 0},
		{"20 match", notebook, 20},
		{"1000 env vars, 2 match", largePod(b, notebook, 1000, 0), 2},
		{"128 KB, one matches", largePod(b, notebook, 500, 500), 1},
		{"128 KB, none matches", largePod(b, notebook, 500, 500), 0},
	} {
		b.Run(bench.name, func(b *testing.B) {
			webhook, err := New(benchmarkIndex(bench.matches), DefaultSettings())
			if err != nil {
				b.Fatal(err)
			}
			measure(b, webhook, bench.pod, bench.matches > 0)
		})
	}
}

// discard is a ResponseWriter that costs nothing.
type discard http.Header

func (d discard) Header() http.Header         { return http.Header(d) }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// largePod adds environment variables to the pod's first container, and volumes that it
// mounts.
func largePod(b *testing.B, raw []byte, variables, volumes int) []byte {
	b.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		b.Fatal(err)
	}
	first := &pod.Spec.Containers[0]
	for i := range variables {
		first.Env = append(first.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: fmt.Sprintf("https://service-%d.team-vision.svc:8443/", i)})
	}
	for i := range volumes {
		name := fmt.Sprintf("volume-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}}})
		first.VolumeMounts = append(first.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: "/etc/volumes/" + name})
	}
	large, err := json.Marshal(pod)
	if err != nil {
		b.Fatal(err)
	}
	return large
}

// BenchmarkSteps measures the steps for a matching pod.
func BenchmarkSteps(b *testing.B) {
	raw := benchmarkPod(b)
	settings := DefaultSettings()
	md, _ := meta.ReadMetadata(raw)
	chosen, err := benchmarkIndex(1).Select(b.Context(), md.Namespace, md.Labels)
	if err != nil {
		b.Fatal(err)
	}
	pod := func() *podstate.Pod {
		p, _ := podstate.Read(raw, md, chosen, meta.NewBudget(b.Context()))
		return p
	}
	b.Run("metadata", func(b *testing.B) {
		for b.Loop() {
			meta.ReadMetadata(raw)
		}
	})
	b.Run("pod", func(b *testing.B) {
		for b.Loop() {
			pod()
		}
	})
	b.Run("pod and merge", func(b *testing.B) {
		for b.Loop() {
			merge.All(pod(), match.Match{Objects: chosen}, nil, &merge.LeftAlone{Commands: settings.CommandExcluded, Mesh: settings.MeshContainers})
		}
	})
	b.Run("response", func(b *testing.B) {
		m := merge.All(pod(), match.Match{Objects: chosen}, nil, &merge.LeftAlone{Commands: settings.CommandExcluded, Mesh: settings.MeshContainers})
		for b.Loop() {
			m.Response(false)
		}
	})
}

func benchmarkPod(b *testing.B) []byte { return recordedReview(b).Request.Object.Raw }

func recordedReview(b *testing.B) *admissionv1.AdmissionReview {
	b.Helper()
	data, err := os.ReadFile("../../test/bench/testdata/notebook.json")
	if err != nil {
		b.Fatal(err)
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(data, review); err != nil {
		b.Fatal(err)
	}
	return review
}

// benchmarkIndex has at least 11 PodDefaults, of which the first match.
func benchmarkIndex(matches int) *source.Index {
	index := source.NewIndex()
	for i := range max(11, matches) {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-vision", Name: fmt.Sprintf("number-%d", i), ResourceVersion: "12345"}}
		pd.Spec.Selector.MatchLabels = map[string]string{fmt.Sprintf("number-%d", i): "true"}
		if i < matches {
			pd.Spec.Selector.MatchLabels = nil
		}
		volume, path := fmt.Sprintf("from-poddefault-%d", i), fmt.Sprintf("/secret/gcp-%d", i)
		pd.Spec.Env = []corev1.EnvVar{{Name: fmt.Sprintf("FROM_PODDEFAULT_%d", i), Value: path + "/user-gcp-sa.json"}}
		pd.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "user-gcp-sa"}}}}
		pd.Spec.VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: path, ReadOnly: true}}
		index.Set(plan.Compile(pd))
	}
	return index
}
