// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// show adds a registry to the manager's /metrics until the returned func is called.
// Controller-runtime has one registry per process. If several managers run in it, as in tests,
// only the first server's metrics appear.
func show(registry *prometheus.Registry, logger *slog.Logger) (hide func()) {
	if err := controllermetrics.Registry.Register(registry); err != nil {
		logger.Warn("the metrics of this webhook server are not shown: another one in this process has the same", slog.Any("error", err))
		return func() {}
	}
	return func() { controllermetrics.Registry.Unregister(registry) }
}
