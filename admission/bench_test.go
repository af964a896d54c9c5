// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// BenchmarkTyped is what typed handlers cost beside the wire, for a notebook pod of
// 7 KB.
func BenchmarkTyped(b *testing.B) {
	body, err := os.ReadFile("../cmd/test/bench/testdata/notebook.json")
	if err != nil {
		b.Fatal(err)
	}
	raw, ok := rawjson.Lookup(body, "request", "object")
	if !ok {
		b.Fatal("the recording has no object")
	}
	req := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}}
	req.Object.Raw = raw
	add := func(_ context.Context, pod *corev1.Pod) error {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Env = append(c.Env, corev1.EnvVar{Name: "TOKEN_FILE", Value: "/var/run/token"})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/var/run/token"})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "token"})
		return nil
	}
	for _, bc := range []struct {
		name    string
		handler admission.Handler
	}{
		{"mutate/adds", admission.Mutate(add)},
		{"mutate/changes nothing", admission.Mutate(func(context.Context, *corev1.Pod) error { return nil })},
		{"mutate/changes nothing, unstructured", admission.Mutate(func(context.Context, *unstructured.Unstructured) error { return nil })},
		{"mutate/chain of three", admission.Chain(admission.Mutate(add), label("a", "b"), label("c", "d"))},
		{"mutate/adds 1000 env vars", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			for i := range 1000 {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("V%d", i), Value: "v"})
			}
			return nil
		})},
		{"validate", admission.Validate(func(context.Context, *corev1.Pod) error { return nil })},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if resp, err := bc.handler.Handle(b.Context(), req); err != nil || !resp.Allowed {
					b.Fatal(resp, err)
				}
			}
		})
	}
}
