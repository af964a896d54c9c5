// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
)

func TestPluginsAreCountedByOutcome(t *testing.T) {
	metrics := prometheus.NewRegistry()
	observe, err := observePlugins(metrics)
	if err != nil {
		t.Fatal(err)
	}
	observe("FuseSidecar", dataset.OutcomeRefused)
	if n, err := testutil.GatherAndCount(metrics, "sallyport_dataset_plugins_total"); err != nil || n != len(dataset.PluginNames())*len(dataset.Outcomes()) {
		t.Errorf("%d series, %v", n, err)
	}
	all, err := metrics.Gather()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	total := 0.0
	for _, metric := range all[0].GetMetric() {
		total += metric.GetCounter().GetValue()
	}
	if total != 1 {
		t.Errorf("%v pods were counted", total)
	}
}
