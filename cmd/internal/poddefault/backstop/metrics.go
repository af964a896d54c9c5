// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/store/control"
)

// metrics describe the leading replica. On other replicas the gauges are 0.
type metrics struct {
	writes  *prometheus.CounterVec
	indexes prometheus.Gauge
	omitted prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		writes: control.Writes("sallyport_poddefault_index_writes_total",
			"Writes of the indexes of PodDefaults that the backstop reads, by result: success or failure.", control.Success, control.Failure),
		indexes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_poddefault_indexes", Help: "Indexes of PodDefaults that the backstop reads in the cluster; 0 if another replica leads.",
		}),
		omitted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_poddefault_index_omitted",
			Help: "PodDefaults and ClusterPodDefaults that do not fit into the index of their namespace, so that the backstop rejects more pods than they select; 0 if another replica leads.",
		}),
	}
	if err := errors.Join(registry.Register(m.writes), registry.Register(m.indexes), registry.Register(m.omitted)); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", Name, err)
	}
	return m, nil
}

func (m *metrics) written(err error) {
	result := control.Success
	if err != nil {
		result = control.Failure
	}
	m.writes.WithLabelValues(result).Inc()
}
