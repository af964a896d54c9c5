// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// durationBuckets have a finer resolution than kube-apiserver's own metric, whose first
// bucket ends at 5 ms.
var durationBuckets = []float64{
	.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// metrics are the metrics of the listener. Label values never come from a request, apart
// from served paths.
type metrics struct {
	durations       *prometheus.HistogramVec
	refused         *prometheus.CounterVec
	panics          prometheus.Counter
	evicted         prometheus.Counter
	handshakeErrors prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sallyport_serving_request_duration_seconds",
			Help:    "Time from the header of a webhook request to its answer, by path and HTTP status code.",
			Buckets: durationBuckets,
		}, []string{"path", "code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_serving_refused_total",
			Help: "Requests answered by the listener instead of a webhook, by reason.",
		}, []string{"reason"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sallyport_serving_panics_total",
			Help: "Requests whose webhook panicked.",
		}),
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sallyport_serving_connections_evicted_total",
			Help: "Connections to either port closed because there were too many.",
		}),
		handshakeErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sallyport_serving_tls_handshake_errors_total",
			Help: "TLS handshakes that failed.",
		}),
	}
}

// register registers the metrics, including those computed from the server's state.
func (s *Server) registerMetrics() error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	collectors := []prometheus.Collector{
		s.metrics.durations, s.metrics.refused, s.metrics.panics, s.metrics.evicted, s.metrics.handshakeErrors,
		gauge("sallyport_serving_reviews_in_flight", "Webhook requests being processed.",
			func() float64 { return float64(s.seats.InUse()) }),
		gauge("sallyport_serving_reviews_waiting", "Webhook requests waiting for others to finish.",
			func() float64 { return float64(s.seats.Queued()) }),
		gauge("sallyport_serving_bytes_in_flight", "Bytes of request bodies in memory.",
			func() float64 { return float64(s.bodies.inMemory()) }),
		gauge("sallyport_serving_connections", "Open connections.",
			func() float64 { return float64(s.connections.count()) }),
		gauge("sallyport_serving_metrics_connections", "Open connections to the port for metrics and probes.",
			func() float64 { return float64(s.plainConnections.count()) }),
	}
	if notAfter := s.options.CertificateNotAfter; notAfter != nil {
		collectors = append(collectors, gauge("sallyport_serving_certificate_expiration_timestamp_seconds",
			"When the serving certificate expires, in seconds since 1970; 0 if there is none.",
			func() float64 {
				if at := notAfter(); !at.IsZero() {
					return float64(at.Unix())
				}
				return 0
			}))
	}
	var errs []error
	for _, collector := range collectors {
		errs = append(errs, s.registry.Register(collector))
	}
	return errors.Join(errs...)
}

// durations is the histogram of one path.
type durations struct {
	path string
	all  *prometheus.HistogramVec
	// ok is cached, because nearly all observations go there.
	ok prometheus.Observer
}

func (m *metrics) durationsOf(path string) durations {
	return durations{path: path, all: m.durations, ok: m.durations.WithLabelValues(path, "200")}
}

// observe records a request; status 0 means that its connection was cut.
func (d durations) observe(status int, took time.Duration) {
	observer := d.ok
	if status != http.StatusOK {
		observer = d.all.WithLabelValues(d.path, strconv.Itoa(status))
	}
	observer.Observe(took.Seconds())
}
