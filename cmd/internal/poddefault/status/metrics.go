// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/store/control"
)

// metrics describe the leading replica. On other replicas the gauges are 0.
type metrics struct {
	writes      *prometheus.CounterVec
	conflicting prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		writes: control.Writes("sallyport_poddefault_status_writes_total",
			"Writes of the status of PodDefaults and ClusterPodDefaults, by result: success, conflict (the object had changed) or failure.",
			control.Success, control.Conflict, control.Failure),
		conflicting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_poddefaults_conflicting",
			Help: "PodDefaults and ClusterPodDefaults that conflict with another one; 0 if another replica leads.",
		}),
	}
	if err := errors.Join(registry.Register(m.writes), registry.Register(m.conflicting)); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", Name, err)
	}
	return m, nil
}
