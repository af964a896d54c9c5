// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"os"
	"testing"

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
		{"denied", admission.Denied("pod segmentation-0: two PodDefaults set the same variable")},
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
