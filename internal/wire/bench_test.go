// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"log/slog"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// BenchmarkReview measures the envelope of a two-container notebook pod, from the body
// to the bytes of the answer, around a handler that does nothing.
func BenchmarkReview(b *testing.B) {
	body := recorded(b, "notebook.json")
	patch := jsonpatch.Patch{
		{Op: jsonpatch.Add, Path: "/spec/volumes/-", Value: []byte(`{"name":"gcp","secret":{"secretName":"gcp-credentials"}}`)},
		{Op: jsonpatch.Add, Path: "/spec/containers/0/env/-", Value: []byte(`{"name":"GOOGLE_APPLICATION_CREDENTIALS","value":"/secret/gcp/key.json"}`)},
		{Op: jsonpatch.Add, Path: "/spec/containers/0/volumeMounts/-", Value: []byte(`{"name":"gcp","mountPath":"/secret/gcp"}`)},
		{Op: jsonpatch.Add, Path: "/metadata/annotations/poddefault.admission.kubeflow.org~1poddefault-gcp", Value: []byte(`"1234567"`)},
	}
	for _, bc := range []struct {
		name string
		resp *admission.Response
	}{
		{"allowed", admission.Allowed()},
		{"patched", admission.Patched(patch)},
		{"denied", admission.DeniedResponse("pod segmentation-0: two PodDefaults set the same variable")},
	} {
		b.Run(bc.name, func(b *testing.B) {
			a, err := NewAdmission(definition(admission.TypeMutating, always(bc.resp, nil)), AdmissionOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Review(b.Context(), body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// recorded returns a review captured from an API server.
func recorded(tb testing.TB, file string) []byte {
	tb.Helper()
	body, err := os.ReadFile("../../cmd/test/bench/testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

// BenchmarkTypedReview is a review with a typed handler, from the body to the answer.
func BenchmarkTypedReview(b *testing.B) {
	body := recorded(b, "notebook.json")
	for name, mutate := range map[string]func(context.Context, *corev1.Pod) error{
		"adds": func(_ context.Context, pod *corev1.Pod) error {
			for i := range pod.Spec.Containers {
				c := &pod.Spec.Containers[i]
				c.Env = append(c.Env, corev1.EnvVar{Name: "TOKEN_FILE", Value: "/var/run/token"})
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/var/run/token"})
			}
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "token"})
			return nil
		},
		"changes nothing": func(context.Context, *corev1.Pod) error { return nil },
	} {
		b.Run(name, func(b *testing.B) {
			pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
			a, err := NewAdmission(admission.Mutating("token.pods.example.com", pods, admission.Mutate(mutate)), AdmissionOptions{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Review(b.Context(), body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
