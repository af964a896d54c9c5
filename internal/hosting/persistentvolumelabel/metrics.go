// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of calls to the cloud.
const (
	resultLabels  = "labels"  // answered, even without labels
	resultError   = "error"   // refused
	resultFault   = "fault"   // timed out or panicked
	resultTooMany = "toomany" // not called: too many calls are running
)

// Metrics describe calls to the cloud.
type Metrics struct {
	duration prometheus.Histogram
	calls    *prometheus.CounterVec
	inFlight prometheus.Gauge
}

// NewMetrics registers the metrics of one caller, webhook or controller.
func NewMetrics(registry prometheus.Registerer, caller string) (*Metrics, error) {
	labels := prometheus.Labels{"caller": caller}
	m := &Metrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sallyport_cloud_call_duration_seconds", Help: "Duration of calls to the cloud for the labels of a volume.",
			ConstLabels: labels, Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_cloud_calls_total", Help: "Calls to the cloud for the labels of a volume, by result: labels, error, fault, toomany.",
			ConstLabels: labels,
		}, []string{"result"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sallyport_cloud_calls_in_flight", Help: "Calls to the cloud that have not returned, including abandoned ones.",
			ConstLabels: labels,
		}),
	}
	for _, result := range []string{resultLabels, resultError, resultFault, resultTooMany} {
		m.calls.WithLabelValues(result)
	}
	for _, collector := range []prometheus.Collector{m.duration, m.calls, m.inFlight} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("metrics of calls to the cloud: %w", err)
		}
	}
	return m, nil
}

// began counts a call. Call done with its result.
func (m *Metrics) began() (done func(error)) {
	if m == nil {
		return func(error) {}
	}
	m.inFlight.Inc()
	start := time.Now()
	return func(err error) {
		m.inFlight.Dec()
		m.duration.Observe(time.Since(start).Seconds())
		result := resultLabels
		switch {
		case err != nil && isDecision(err):
			result = resultError
		case err != nil:
			result = resultFault
		}
		m.calls.WithLabelValues(result).Inc()
	}
}

func (m *Metrics) refused() {
	if m != nil {
		m.calls.WithLabelValues(resultTooMany).Inc()
	}
}
