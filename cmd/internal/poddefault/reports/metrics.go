// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// unavailable is the metric label while no report can be written.
const unavailable = "unavailable"

func newMetrics(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sallyport_poddefault_report_writes_total",
		Help: "Writes of OpenReports reports about PodDefaults, by result: success, conflict (another replica was faster), unavailable (the definition or a right is missing) or failure.",
	}, []string{"result"})
	for _, result := range []string{"success", "conflict", unavailable, "failure"} {
		writes.WithLabelValues(result)
	}
	if err := registry.Register(writes); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", Name, err)
	}
	return writes, nil
}

// result returns the metric label for the result of a write.
func result(err error) string {
	switch {
	case err == nil:
		return "success"
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), errors.Is(err, errNoNamespace):
		return "conflict"
	}
	return "failure"
}
