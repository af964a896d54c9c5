// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// mostCounted limits the time series: PodDefaults come and go, and their authors must
// not exhaust memory. Beyond it, objects are counted together under an empty name and
// namespace.
const mostCounted = 5000

// Counts are metrics of how many pods each object was applied to, and how many were
// denied because of it. They are not part of the status, because a status update
// changes the resourceVersion that pods carry.
type Counts struct {
	decisions *prometheus.CounterVec

	mu       sync.Mutex
	counters map[[3]string]prometheus.Counter // by the labels of decisions
}

// NewCounts registers the metric.
func NewCounts(registry prometheus.Registerer) (*Counts, error) {
	c := &Counts{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sallyport_poddefault_decisions_total",
			Help: "Decisions on pods, by PodDefault (cluster/NAME for a ClusterPodDefault) and decision: applied, denied, skipped, audited or invalid. Dry runs do not count; a pod counts each time the API server calls.",
		}, []string{"namespace", "poddefault", "decision"}),
		counters: map[[3]string]prometheus.Counter{},
	}
	return c, registry.Register(c.decisions)
}

// Count returns a handler that counts the decisions of the webhook's handler.
func (c *Counts) Count(handler admission.Handler) admission.Handler {
	return counting{handler, c}
}

type counting struct {
	admission.Handler
	counts *Counts
}

// Handle implements [admission.Handler].
func (h counting) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	resp, err := h.Handler.Handle(ctx, req)
	if err != nil || resp == nil || req.DryRun != nil && *req.DryRun {
		return resp, err
	}
	for decision, names := range resp.AuditAnnotations {
		for name := range strings.SplitSeq(names, ",") {
			name, _, _ = strings.Cut(name, "@") // cuts the generation
			h.counts.add(req.Namespace, name, decision)
		}
	}
	return resp, nil
}

func (c *Counts) add(namespace, name, decision string) {
	series := [3]string{namespace, name, decision}
	c.mu.Lock()
	counter := c.counters[series]
	if counter == nil {
		if len(c.counters) >= mostCounted {
			series = [3]string{"", "", decision}
		}
		counter = c.decisions.WithLabelValues(series[:]...)
		c.counters[series] = counter
	}
	c.mu.Unlock()
	counter.Inc()
}

// deniedBy returns the audit annotations of a denial: the conflicting objects.
func (m *merge) deniedBy() map[string]string {
	var objects []*Compiled
	for _, conflict := range m.conflicts {
		if !isIn(objects, conflict.object) {
			objects = append(objects, conflict.object)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	return map[string]string{"denied": generations(objects)}
}
