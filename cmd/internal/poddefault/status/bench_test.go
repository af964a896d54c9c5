// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// BenchmarkCompareAll is the worst case: a namespace in which every object sets the
// same variable to a value of its own, for pods of its own.
func BenchmarkCompareAll(b *testing.B) {
	for _, n := range []int{1_000, 5_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, err := newMetrics(prometheus.NewRegistry())
			if err != nil {
				b.Fatal(err)
			}
			objects := make([]*plan.Plan, n)
			for i := range objects {
				spec := envSpec("", fmt.Sprint(i))
				spec.Selector.MatchLabels = map[string]string{"model": fmt.Sprint(i)}
				objects[i] = plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprint(i)}, Spec: spec})
			}
			for b.Loop() {
				r := newReconciler(&Controller{log: slog.New(slog.DiscardHandler), overlap: compare.OfPlans, pace: defaultPace, metrics: m})
				for _, o := range objects {
					r.set(o)
				}
				for r.compareNext() {
				}
				r.writes.ShutDown()
			}
		})
	}
}
