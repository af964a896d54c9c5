// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of one definition; its name is a label.
type metrics struct {
	objects          *prometheus.CounterVec
	pending, blocked prometheus.Gauge
}

func newMetrics(crd string, registry prometheus.Registerer) (*metrics, error) {
	labels := prometheus.Labels{"crd": crd}
	m := &metrics{
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_storage_migration_objects_total", ConstLabels: labels,
			Help: "Objects that a storage migration asked the API server to rewrite, by result: rewritten, unchanged (stored as wanted already), gone or failed.",
		}, []string{"result"}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_storage_migration_pending", ConstLabels: labels,
			Help: "1 if status.storedVersions of the definition names another version than the storage version, else 0; 0 where another replica leads.",
		}),
		blocked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_storage_migration_blocked_objects", ConstLabels: labels,
			Help: "Objects that could not be rewritten the last time, because of which status.storedVersions stays; 0 where another replica leads.",
		}),
	}
	return m, errors.Join(registry.Register(m.objects), registry.Register(m.pending), registry.Register(m.blocked))
}

// forget is for a replica that leads no more.
func (m *metrics) forget() {
	m.pending.Set(0)
	m.blocked.Set(0)
}
