// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// BenchmarkHandle measures a review without the wire: the recorded notebook pod of
// cmd/test/bench with two Datasets, and the same pod without opt-in.
func BenchmarkHandle(b *testing.B) {
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "bench", "testdata", "notebook-datasets.json"))
	if err != nil {
		b.Fatal(err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		b.Fatal(err)
	}
	cluster := "kind: PersistentVolumeClaim\nmetadata: {name: segmentation-workspace, namespace: team-vision}\n"
	for _, name := range []string{"imagenet", "models"} {
		cluster += "---\n" + strings.NewReplacer("name: data", "name: "+name, "team-a-data", "team-vision-"+name, "team-a", "team-vision").Replace(oneDataset) +
			"status: {cacheAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z]}]}]}}}\n"
	}
	webhook := webhookOver(b, newIndex(b, []byte(cluster)), nil)
	for name, change := range map[string]func(string) string{
		"two datasets": func(pod string) string { return pod },
		"no opt-in":    func(pod string) string { return strings.Replace(pod, ServerfulLabel, "example.com/other", 1) },
	} {
		b.Run(name, func(b *testing.B) {
			req := review.Request.DeepCopy()
			req.Object.Raw = []byte(change(string(req.Object.Raw)))
			b.ReportAllocs()
			for b.Loop() {
				resp, err := webhook.Handler.Handle(b.Context(), req)
				if err != nil || !resp.Allowed || (len(resp.Patch) > 0) != (name == "two datasets") {
					b.Fatalf("%+v, %v", resp, err)
				}
			}
		})
	}
}
