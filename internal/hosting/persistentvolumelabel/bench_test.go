// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/test/cases"
)

// BenchmarkHandle measures the handler alone, on a volume with cached labels.
func BenchmarkHandle(b *testing.B) {
	webhooks, err := New(&cloud{Labels: map[string]string{corev1.LabelTopologyZone: "zone-a", corev1.LabelTopologyRegion: "region-1"}}, DefaultSettings(), nil)
	if err != nil {
		b.Fatal(err)
	}
	req := cases.Named(b, "a-gce-disk-is-labelled").Request(b, resource)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := webhooks[0].Handler.Handle(b.Context(), req)
		if err != nil || len(resp.Patch) == 0 {
			b.Fatalf("%v %+v", err, resp)
		}
	}
}
