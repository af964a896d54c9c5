// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// metrics describe the leading replica. On other replicas the gauges are 0.
type metrics struct {
	writes      *prometheus.CounterVec
	conflicting prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_poddefault_status_writes_total",
			Help: "Writes of the status of PodDefaults and ClusterPodDefaults, by result: success, conflict (the object had changed) or failure.",
		}, []string{"result"}),
		conflicting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_poddefaults_conflicting",
			Help: "PodDefaults and ClusterPodDefaults that conflict with another one; 0 if another replica leads.",
		}),
	}
	for _, result := range []string{"success", "conflict", "failure"} {
		m.writes.WithLabelValues(result)
	}
	if err := errors.Join(registry.Register(m.writes), registry.Register(m.conflicting)); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", Name, err)
	}
	return m, nil
}

func (m *metrics) reset() { m.conflicting.Set(0) }

// result returns the metric label for the result of a write.
func result(err error) string {
	switch {
	case err == nil:
		return "success"
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return "conflict"
	}
	return "failure"
}
