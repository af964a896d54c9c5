// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the replica that leads; of others the gauges are 0.
type metrics struct {
	writes  *prometheus.CounterVec
	indexes prometheus.Gauge
	omitted prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_poddefault_index_writes_total",
			Help: "Indexes of PodDefaults, which the backstop reads, that were written, by result: success or failure.",
		}, []string{"result"}),
		indexes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_poddefault_indexes", Help: "Indexes of PodDefaults in the cluster, which the backstop reads; 0 where another replica leads.",
		}),
		omitted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_poddefault_index_omitted",
			Help: "PodDefaults and ClusterPodDefaults for which there is no room in the index of their namespace: the backstop does not stand in for them; 0 where another replica leads.",
		}),
	}
	for _, result := range []string{"success", "failure"} {
		m.writes.WithLabelValues(result)
	}
	if err := errors.Join(registry.Register(m.writes), registry.Register(m.indexes), registry.Register(m.omitted)); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", Name, err)
	}
	return m, nil
}

func (m *metrics) written(err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.writes.WithLabelValues(result).Inc()
}
