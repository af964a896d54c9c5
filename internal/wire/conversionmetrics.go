// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
)

// conversionCounters hold two metrics. sallyport_conversion_reviews_total by outcome:
// converted, failed (status Failure), rejected (HTTP 4xx) or faulty (HTTP 5xx).
// sallyport_conversion_objects_total by kind, versions and outcome: converted or
// failed.
type conversionCounters struct {
	reviews, objects *prometheus.CounterVec
}

func newConversionCounters() conversionCounters {
	return conversionCounters{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_conversion_reviews_total",
			Help: "Conversion reviews by outcome: converted, failed (status Failure), rejected (HTTP 4xx), faulty (HTTP 5xx).",
		}, []string{"outcome"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_conversion_objects_total",
			Help: "Objects by group, kind, source version, desired version and outcome: converted, failed.",
		}, []string{"group", "kind", "from", "to", "outcome"}),
	}
}

func (c conversionCounters) register(registerer prometheus.Registerer) error {
	return errors.Join(registerer.Register(c.reviews), registerer.Register(c.objects))
}

// conversionMetrics are the counters of a handler, looked up once.
type conversionMetrics struct {
	successful, failure, rejected, faulty prometheus.Counter
	objects                               map[versionPair]objectCounters
}

type versionPair struct {
	kind     schema.GroupKind
	from, to string
}

type objectCounters struct{ converted, failed prometheus.Counter }

// otherVersion stands for versions that no converter knows, because callers can name
// any version.
const otherVersion = "other"

func (m *Metrics) forConverters(converters []conversion.Converter) *conversionMetrics {
	if m == nil {
		return nil
	}
	c := &conversionMetrics{objects: map[versionPair]objectCounters{}}
	for outcome, counter := range map[string]*prometheus.Counter{
		"converted": &c.successful, "failed": &c.failure, "rejected": &c.rejected, "faulty": &c.faulty,
	} {
		*counter = m.conversions.reviews.WithLabelValues(outcome)
	}
	for _, converter := range converters {
		kind := converter.Kind()
		versions := append(converter.Versions(), otherVersion)
		for _, from := range versions {
			for _, to := range versions {
				counter := func(outcome string) prometheus.Counter {
					return m.conversions.objects.WithLabelValues(kind.Group, kind.Kind, from, to, outcome)
				}
				c.objects[versionPair{kind, from, to}] = objectCounters{counter("converted"), counter("failed")}
			}
		}
	}
	return c
}

// converted counts an object that has a converter.
func (m *conversionMetrics) converted(kind schema.GroupKind, from, to string, err error) {
	if m == nil {
		return
	}
	counters, ok := m.objects[versionPair{kind, from, to}]
	if !ok {
		if _, known := m.objects[versionPair{kind, from, otherVersion}]; !known {
			from = otherVersion
		}
		if _, known := m.objects[versionPair{kind, otherVersion, to}]; !known {
			to = otherVersion
		}
		counters = m.objects[versionPair{kind, from, to}]
	}
	if err != nil {
		counters.failed.Inc()
	} else {
		counters.converted.Inc()
	}
}

func (m *conversionMetrics) answered(failure error) {
	switch {
	case m == nil:
	case failure != nil:
		m.failure.Inc()
	default:
		m.successful.Inc()
	}
}

func (m *conversionMetrics) failed(code int) {
	switch {
	case m == nil:
	case code < http.StatusInternalServerError:
		m.rejected.Inc()
	default:
		m.faulty.Inc()
	}
}
