// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/cloud-provider/app"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/sallyport-io/sallyport/serving"
)

// upstreamMetrics are the metrics of upstream's webhook server, by status code and name of
// the webhook. Upstream counts errors only; these count every answer.
type upstreamMetrics struct {
	total    *metrics.CounterVec
	duration *metrics.HistogramVec
}

// newUpstreamMetrics finds the metrics in the registry of the process, where upstream
// registers them once. It reads them from the error of registering them again.
func newUpstreamMetrics() (*upstreamMetrics, error) {
	app.RegisterMetrics()
	labels := []string{"code", "webhook"}
	existing := func(c prometheus.Collector) prometheus.Collector {
		var already prometheus.AlreadyRegisteredError
		if err := legacyregistry.Registerer().Register(c); !errors.As(err, &already) {
			legacyregistry.Registerer().Unregister(c)
			return nil
		}
		return already.ExistingCollector
	}
	total, okTotal := existing(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cloud_provider_webhook_request_total", Help: "[ALPHA] Number of HTTP requests partitioned by status code.",
	}, labels)).(*metrics.CounterVec)
	duration, okDuration := existing(prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "cloud_provider_webhook_request_duration_seconds", Help: "[ALPHA] Request latency in seconds. Broken down by status code.",
	}, labels)).(*metrics.HistogramVec)
	if !okTotal || !okDuration {
		return nil, errors.New("this version of k8s.io/cloud-provider has other metrics of webhooks")
	}
	return &upstreamMetrics{total, duration}, nil
}

// count counts the answers of routes.
func (h *host) count(routes []serving.Route) error {
	m, err := newUpstreamMetrics()
	if err != nil {
		h.log.Warn("cloud_provider_webhook_request_total is not counted", "reason", err)
		return nil
	}
	if err := errors.Join(h.metrics.Registry.Register(m.total), h.metrics.Registry.Register(m.duration)); err != nil {
		return err
	}
	for _, w := range h.webhooks {
		for i := range routes {
			if routes[i].Path != w.Definition.Path {
				continue
			}
			answer := routes[i].Answer
			routes[i].Answer = func(ctx context.Context, writer http.ResponseWriter, call serving.Call) {
				start, status := time.Now(), &status{ResponseWriter: writer, code: http.StatusOK}
				answer(ctx, status, call)
				if w.upstream && status.code >= http.StatusBadRequest && status.code != http.StatusServiceUnavailable {
					return // upstream has counted it
				}
				code := strconv.Itoa(status.code)
				m.total.WithLabelValues(code, w.Name).Inc()
				m.duration.WithLabelValues(code, w.Name).Observe(time.Since(start).Seconds())
			}
		}
	}
	return nil
}

// status records the status of an answer.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for [http.ResponseController].
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }
