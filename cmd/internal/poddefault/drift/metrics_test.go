// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

func TestATenantWithManyObjectsLosesTheNamesOfTheOwnOnes(t *testing.T) {
	r := NewReport()
	add := func(namespace string, objects int) {
		for i := range objects {
			object := plan.Compile(&kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p-%d", i)}})
			r.Add([]Finding{{Title: object.String(), Object: object, State: "current"}}, 2)
		}
	}
	add("a-greedy", 2*maxSeries)
	add("team-b", 10)
	to := make(chan prometheus.Metric, 2*maxSeries)
	r.collect(to)
	close(to)
	named, pods := map[string]int{}, map[string]float64{}
	for metric := range to {
		var out dto.Metric
		if err := metric.Write(&out); err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		for _, pair := range out.Label {
			labels[pair.GetName()] = pair.GetValue()
		}
		if labels["poddefault"] != "" {
			named[labels["namespace"]]++
		}
		pods[labels["namespace"]] += out.Gauge.GetValue()
	}
	if named["team-b"] != 10 || named["a-greedy"] != maxSeries-10 || pods["a-greedy"] != 4*maxSeries || pods["team-b"] != 20 {
		t.Errorf("named series %v, pods %v", named, pods)
	}
}
