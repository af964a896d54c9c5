// SPDX-License-Identifier: Apache-2.0

// Package counts counts decisions about pods by object.
package counts

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/admission"
)

const (
	// maxCounted limits the time series with the name of an object: PodDefaults come and go, and their
	// authors must not exhaust memory. If they are too many, the namespaces with the most of them yield:
	// their other objects are counted together, without a name.
	maxCounted = 5000
	// maxNameless limits the namespaces with such counts. All others share one without a namespace.
	maxNameless = 200
	// goneFor is how long the series of a deleted object is served, for the last scrapes of it.
	goneFor = 5 * time.Minute
)

var decisionsDesc = prometheus.NewDesc("sallyport_poddefault_decisions_total",
	"Decisions on pods, by PodDefault (cluster/NAME for a ClusterPodDefault; empty for those of a namespace beyond its share of 5,000 series) and decision: applied, denied, skipped, audited or invalid. Dry runs do not count; a pod counts each time the API server calls.",
	[]string{"namespace", "poddefault", "decision"}, nil)

// Counts are metrics of how many pods each object was applied to, and how many were
// denied because of it. They are not part of the status, because a status update
// changes the resourceVersion that pods carry.
type Counts struct {
	known func(namespace, decision string) bool
	now   func() time.Time

	mu         sync.Mutex
	namespaces map[string][]*counted          // those, the oldest of each namespace first
	nameless   map[string]map[string]*counted // by namespace and decision
	index      map[series]*counted            // named ones
}

// series are the labels of a time series.
type series struct{ namespace, object, decision string }

// counted is a time series.
type counted struct {
	series
	value float64
	gone  time.Time // since when the object is not known; zero if it is
}

// NewCounts registers the metric. Known reports whether there is an object, by its namespace or that of
// pods, and by its [plan.Plan.Decision]; or a namespace, if that is empty. Series of others are dropped
// after some minutes.
func NewCounts(registry prometheus.Registerer, known func(namespace, decision string) bool) (*Counts, error) {
	c := &Counts{known: known, now: time.Now, namespaces: map[string][]*counted{}, nameless: map[string]map[string]*counted{}, index: map[series]*counted{}}
	return c, registry.Register(c)
}

// Count counts the decisions about a pod that is created in a namespace.
func (c *Counts) Count(namespace string, resp *admission.Response) {
	for decision, names := range resp.AuditAnnotations {
		for name := range strings.SplitSeq(names, ",") {
			name, _, _ = strings.Cut(name, "@") // cuts the generation
			c.add(series{namespace, name, decision})
		}
	}
}

func (c *Counts) add(of series) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.index[of]
	if one == nil && c.room(of.namespace) {
		of = series{strings.Clone(of.namespace), strings.Clone(of.object), strings.Clone(of.decision)} // parts of a request
		one = &counted{series: of}
		c.index[of] = one
		c.namespaces[of.namespace] = append(c.namespaces[of.namespace], one)
	}
	if one == nil {
		one = c.withoutName(of)
	}
	one.value++
}

// room reports whether a namespace may have another named series, and takes one from the namespace with
// the most of them if there is none.
func (c *Counts) room(namespace string) bool {
	if len(c.index) < maxCounted {
		return true
	}
	namespaces := len(c.namespaces)
	mine := len(c.namespaces[namespace])
	if mine == 0 {
		namespaces++
	}
	if mine >= maxCounted/namespaces {
		return false
	}
	greedy := namespace
	for other, held := range c.namespaces {
		if n := len(held) - len(c.namespaces[greedy]); n > 0 || n == 0 && other < greedy {
			greedy = other
		}
	}
	held := c.namespaces[greedy]
	last := held[len(held)-1]
	c.forget(last)
	c.withoutName(last.series).value += last.value
	return true
}

// withoutName returns the series of the namespace for objects beyond its share.
func (c *Counts) withoutName(of series) *counted {
	of.object = ""
	if c.nameless[of.namespace] == nil && len(c.nameless) >= maxNameless {
		of.namespace = ""
	}
	byDecision := c.nameless[of.namespace]
	if byDecision == nil {
		of.namespace, byDecision = strings.Clone(of.namespace), map[string]*counted{}
		c.nameless[of.namespace] = byDecision
	}
	if byDecision[of.decision] == nil {
		byDecision[of.decision] = &counted{series: of}
	}
	return byDecision[of.decision]
}

// forget drops a named series.
func (c *Counts) forget(one *counted) {
	delete(c.index, one.series)
	held := slices.DeleteFunc(c.namespaces[one.namespace], func(other *counted) bool { return other == one })
	if c.namespaces[one.namespace] = held; len(held) == 0 {
		delete(c.namespaces, one.namespace)
	}
}

// Describe implements [prometheus.Collector].
func (c *Counts) Describe(to chan<- *prometheus.Desc) { to <- decisionsDesc }

// Collect implements [prometheus.Collector].
func (c *Counts) Collect(to chan<- prometheus.Metric) {
	for _, one := range c.all() {
		to <- prometheus.MustNewConstMetric(decisionsDesc, prometheus.CounterValue, one.value, one.namespace, one.object, one.decision)
	}
}

// all drops the series of what has been gone for long, and returns a copy of the others.
func (c *Counts) all() []counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	out := make([]counted, 0, len(c.index)+len(c.nameless))
	for _, one := range c.index {
		switch {
		case c.known(one.namespace, one.object):
			one.gone = time.Time{}
		case one.gone.IsZero():
			one.gone = now
		case now.Sub(one.gone) >= goneFor:
			c.forget(one)
			continue
		}
		out = append(out, *one)
	}
	for namespace, byDecision := range c.nameless {
		if namespace != "" && !c.known(namespace, "") {
			delete(c.nameless, namespace)
			continue
		}
		for _, one := range byDecision {
			out = append(out, *one)
		}
	}
	return out
}
