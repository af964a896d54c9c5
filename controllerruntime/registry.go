// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// show has the manager's /metrics show a registry until the func it returns is called.
// Controller-runtime's registry is one for the whole process, where several managers
// may run, as in tests: of several servers the first is shown.
func show(registry *prometheus.Registry, logger *slog.Logger) (hide func()) {
	if err := controllermetrics.Registry.Register(registry); err != nil {
		logger.Warn("the metrics of this webhook server are not shown: another one in this process has the same", slog.Any("error", err))
		return func() {}
	}
	return func() { controllermetrics.Registry.Unregister(registry) }
}
