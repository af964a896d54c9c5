// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// tee registers metrics twice: for the webhooks' own /metrics, and for that of the cloud
// controller manager.
type tee struct {
	*prometheus.Registry

	mu       sync.Mutex
	borrowed []prometheus.Collector
}

func newTee() *tee { return &tee{Registry: prometheus.NewRegistry()} }

// Register implements [prometheus.Registerer].
func (t *tee) Register(c prometheus.Collector) error {
	if err := t.Registry.Register(c); err != nil {
		return err
	}
	err := legacyregistry.Registerer().Register(c)
	if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil // a second host in the process: its own registry has it
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.borrowed = append(t.borrowed, c)
	return nil
}

// MustRegister implements [prometheus.Registerer].
func (t *tee) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := t.Register(c); err != nil {
			panic(err)
		}
	}
}

// close unregisters the metrics from the registry of the process.
func (t *tee) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.borrowed {
		legacyregistry.Registerer().Unregister(c)
	}
	t.borrowed = nil
}
