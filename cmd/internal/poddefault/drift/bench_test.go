// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/store"
)

// BenchmarkReport counts 20,000 pods: those of 400 workloads, which have the same labels,
// and pods that all differ.
func BenchmarkReport(b *testing.B) {
	x := podDefault("x", nil)
	source := index(x, everywhere("all"))
	for name, labels := range map[string]func(i int) map[string]string{
		"of 400 workloads": func(i int) map[string]string { return map[string]string{"use": "x", "app": fmt.Sprint(i % 400)} },
		"all different":    func(i int) map[string]string { return map[string]string{"use": "x", "index": fmt.Sprint(i)} },
	} {
		b.Run(name, func(b *testing.B) {
			var pods []*store.Pod
			for i := range 20_000 {
				annotations := carried(x)
				annotations[meta.DecisionsAnnotation] = "x"
				pods = append(pods, &store.Pod{NamespacedName: types.NamespacedName{Namespace: "a", Name: fmt.Sprint(i)}, Facts: store.NewFacts(labels(i), annotations)})
			}
			b.ReportAllocs()
			for b.Loop() {
				if r := report(b.Context(), source, pods, func(string, map[string]string) bool { return true }); r.Of(x.String()).Pods[Current] != len(pods) {
					b.Fatal("not all pods are counted")
				}
			}
		})
	}
}
