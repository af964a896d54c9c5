// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/internal/kube/foreign"
)

type metrics struct {
	applies, repairs, conflicts *prometheus.CounterVec
	foreign                     *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer, registered, wanted, backstop func() bool) (*metrics, error) {
	m := &metrics{
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_registration_applies_total",
			Help: "Attempts to write or remove a webhook configuration or a conversion stanza, by kind and result (success, error).",
		}, []string{"kind", "result"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_registration_repairs_total",
			Help: "Webhook configurations and conversion stanzas restored after another client changed or deleted them, by kind.",
		}, []string{"kind"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_registration_conflicts_total",
			Help: "Changes by another client that were not reverted at once because they keep recurring, by kind.",
		}, []string{"kind"}),
		foreign: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sallyport_registration_foreign_terms",
			Help: "Selector terms and match conditions of other clients that narrow a webhook, by kind and webhook.",
		}, []string{"kind", "webhook"}),
	}
	for _, kind := range []string{mutatingKind, validatingKind, definitionKind, policyKind, bindingKind} { // so that they exist with 0 from the start
		m.repairs.WithLabelValues(kind)
		m.conflicts.WithLabelValues(kind)
		for _, result := range []string{"success", "error"} {
			m.applies.WithLabelValues(kind, result)
		}
	}
	if registry == nil {
		return m, nil
	}
	gauge := func(name, help string, is func() bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if is() {
				return 1
			}
			return 0
		})
	}
	for _, c := range []prometheus.Collector{
		m.applies, m.repairs, m.conflicts, m.foreign,
		gauge("sallyport_registration_registered", "1 if the webhook configurations and the conversion stanzas exist with the current CA bundle and may be written, else 0.", registered),
		gauge("sallyport_registration_backstop_wanted", "1 if a policy should stand in for a webhook, because of the setting guard or of the API server's policies, else 0.", wanted),
		gauge("sallyport_registration_backstop_in_force", "1 if a policy stands in for a webhook that fails open, 0 if the webhook fails closed or has no backstop.", backstop),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) applied(kind string, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	m.applies.WithLabelValues(kind, result).Inc()
}

// noteForeign counts the foreign terms of a configuration.
func (m *metrics) noteForeign(kind string, terms []foreign.Term) {
	m.foreign.DeletePartialMatch(prometheus.Labels{"kind": kind})
	for _, t := range terms {
		m.foreign.WithLabelValues(kind, t.Webhook).Inc()
	}
}
