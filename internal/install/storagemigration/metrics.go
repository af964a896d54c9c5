// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of one definition; its name is a label.
type metrics struct{ pending, blocked prometheus.Gauge }

func newMetrics(crd string, registry prometheus.Registerer) (*metrics, error) {
	labels := prometheus.Labels{"crd": crd}
	m := &metrics{
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_storage_migration_pending", ConstLabels: labels,
			Help: "1 if status.storedVersions of the definition names another version than the storage version, else 0; 0 where another replica leads.",
		}),
		blocked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_storage_migration_blocked", ConstLabels: labels,
			Help: "1 if the migration needs a person: it has failed, no controller acts on it, or the API server does not serve it; else 0, and 0 where another replica leads.",
		}),
	}
	return m, errors.Join(registry.Register(m.pending), registry.Register(m.blocked))
}

// clear is for when nothing is to be migrated, by this replica at least.
func (m *metrics) clear() {
	m.pending.Set(0)
	m.blocked.Set(0)
}
