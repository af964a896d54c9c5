// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/store/control"
)

// unavailable is the metric label while no report can be written.
const unavailable = "unavailable"

func newMetrics(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	writes := control.Writes("sallyport_poddefault_report_writes_total",
		"Writes of OpenReports reports about PodDefaults, by result: success, conflict (another replica was faster), unavailable (the definition or a right is missing) or failure.",
		control.Success, control.Conflict, unavailable, control.Failure)
	if err := registry.Register(writes); err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", Name, err)
	}
	return writes, nil
}

// result returns the metric label for the result of a write.
func result(err error) string {
	if errors.Is(err, errNoNamespace) {
		return control.Conflict
	}
	return control.Result(err)
}
