// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// register registers the metrics of any source. The listener has the metric of the expiry.
func (c *current) register(registry prometheus.Registerer) error {
	return registerAll(registry,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sallyport_certificate_renewals_total",
			Help: "Serving certificates put into use, including the first one.",
		}, func() float64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return float64(c.renewals)
		}),
		gauge("sallyport_certificate_problem", "1 if the last attempt to get or renew the serving certificate failed, else 0.", func() float64 {
			c.mu.Lock()
			defer c.mu.Unlock()
			return one(c.problem != nil)
		}))
}

type authorityMetrics struct {
	rotations prometheus.Counter
}

func newAuthorityMetrics(a *Authority) (*authorityMetrics, error) {
	m := &authorityMetrics{rotations: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sallyport_certificate_rotations_total",
		Help: "Rotations of the authority that this replica has completed.",
	})}
	if a.options.Registry == nil {
		return m, nil
	}
	read := func(value func() float64) func() float64 {
		return func() float64 {
			a.mu.Lock()
			defer a.mu.Unlock()
			return value()
		}
	}
	collectors := []prometheus.Collector{
		m.rotations,
		gauge("sallyport_certificate_authority_not_after_timestamp_seconds",
			"When the authority that signs expires, in seconds since 1970; 0 if there is none.", read(func() float64 {
				if a.state == nil {
					return 0
				}
				return float64(a.state.signer.certificate.NotAfter.Unix())
			})),
		gauge("sallyport_certificate_held", "1 if a certificate of the signing authority is not served because clients would reject it, else 0.",
			read(func() float64 { return one(a.held != nil) })),
		gauge("sallyport_certificate_rotation_problem", "1 if the last attempt to continue a rotation failed, else 0.",
			read(func() float64 { return one(a.rotationErr != nil) })),
	}
	for _, phase := range phases {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "sallyport_certificate_rotation_phase",
			Help:        "1 for the current phase of the authority's rotation, 0 for the others.",
			ConstLabels: prometheus.Labels{"phase": string(phase)},
		}, read(func() float64 { return one(a.state != nil && a.state.phase == phase) })))
	}
	return m, errors.Join(a.register(a.options.Registry), registerAll(a.options.Registry, collectors...))
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func registerAll(registry prometheus.Registerer, collectors ...prometheus.Collector) error {
	var errs []error
	for _, collector := range collectors {
		errs = append(errs, registry.Register(collector))
	}
	return errors.Join(errs...)
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
