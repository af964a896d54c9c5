// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/admission"
)

// Metrics counts the outcomes of reviews. sallyport_admission_reviews_total by webhook
// and outcome: allowed, patched, denied, rejected (fault of the caller, HTTP 4xx) or
// failed (fault of the webhook, HTTP 5xx). See conversionmetrics.go for conversion.
type Metrics struct {
	reviews     *prometheus.CounterVec
	conversions conversionCounters
}

// NewMetrics registers the counters. Call it once for all webhooks of a server.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sallyport_admission_reviews_total",
		Help: "Admission reviews by webhook and outcome: allowed, patched, denied, rejected (HTTP 4xx), failed (HTTP 5xx).",
	}, []string{"webhook", "outcome"}), conversions: newConversionCounters()}
	if err := registerer.Register(m.reviews); err != nil {
		return nil, fmt.Errorf("registering the counters of admission reviews: %w", err)
	}
	if err := m.conversions.register(registerer); err != nil {
		return nil, fmt.Errorf("registering the counters of conversion: %w", err)
	}
	return m, nil
}

// webhookMetrics are the counters of one webhook, looked up once.
type webhookMetrics struct {
	allowed, patched, denied, rejected, faulty prometheus.Counter
}

func (m *Metrics) forWebhook(name string) *webhookMetrics {
	if m == nil {
		return nil
	}
	outcome := func(outcome string) prometheus.Counter { return m.reviews.WithLabelValues(name, outcome) }
	return &webhookMetrics{
		allowed: outcome("allowed"), patched: outcome("patched"), denied: outcome("denied"),
		rejected: outcome("rejected"), faulty: outcome("failed"),
	}
}

func (m *webhookMetrics) decided(resp *admission.Response) {
	switch {
	case m == nil:
	case !resp.Allowed:
		m.denied.Inc()
	case len(resp.Patch) > 0:
		m.patched.Inc()
	default:
		m.allowed.Inc()
	}
}

func (m *webhookMetrics) failed(code int) {
	switch {
	case m == nil:
	case code < http.StatusInternalServerError:
		m.rejected.Inc()
	default:
		m.faulty.Inc()
	}
}
