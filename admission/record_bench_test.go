// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// BenchmarkRecord is what [decode.Record] is worth: a typed call, and the same one that
// compares the object with a deep copy made before. The record has to earn a fifth of a call.
func BenchmarkRecord(b *testing.B) {
	body, err := os.ReadFile("../cmd/test/bench/testdata/notebook.json")
	if err != nil {
		b.Fatal(err)
	}
	req := &admissionv1.AdmissionRequest{Operation: admissionv1.Create}
	req.Object.Raw, _ = rawjson.Lookup(body, "request", "object")
	for name, change := range map[string]func(context.Context, *corev1.Pod) error{
		"changes nothing": func(context.Context, *corev1.Pod) error { return nil },
		"adds": func(_ context.Context, pod *corev1.Pod) error {
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, corev1.EnvVar{Name: "TOKEN_FILE", Value: "/var/run/token"})
			}
			return nil
		},
	} {
		recorded := Mutate(change)
		copied := HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error) {
			t, c := targetOf[*corev1.Pod](), newCall(ctx, req)
			object, err := t.object(req, nil)
			if err != nil {
				return nil, err
			}
			before := object.DeepCopyObject()
			if err := change(c, object.(*corev1.Pod)); err != nil {
				return nil, err
			}
			patch, err := jsonpatch.DiffRaw(req.Object.Raw, before, object)
			return c.response(Patched(patch)), err
		})
		for way, handler := range map[string]Handler{"record": recorded, "deep copy": copied} {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if resp, err := handler.Handle(b.Context(), req); err != nil || !resp.Allowed {
						b.Fatal(resp, err)
					}
				}
			})
		}
	}
}
