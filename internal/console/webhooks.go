// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/internal/callmetrics"
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/lint"
)

// showWebhooks shows everybody's webhooks and policies.
func showWebhooks(ctx context.Context, v *visit) (templ.Component, error) {
	type reading struct {
		counters *callmetrics.Counters
		err      error
	}
	read := make(chan reading, 1)
	go func() { // while the objects are read
		counters, err := callmetrics.Read(ctx, v.cluster.Client.Discovery().RESTClient())
		read <- reading{counters, err}
	}()
	listing, err := inspect.List(ctx, v.cluster)
	metrics := <-read
	if err != nil {
		return nil, err
	}
	if err := v.hide("get /metrics of the API server", metrics.err); err != nil {
		return nil, err
	}
	calls, err := newCalls(metrics.counters)
	if err != nil {
		return nil, err
	}
	return webhooks(v, listing, calls), nil
}

// calls are what the API server counted, by phase and name. It is nil if the user may not read it.
type calls struct {
	since  time.Time
	usages map[string]*callmetrics.Usage
}

func newCalls(counters *callmetrics.Counters) (*calls, error) {
	if counters == nil {
		return nil, nil
	}
	usages, err := callmetrics.Usages(nil, counters)
	if err != nil {
		return nil, err
	}
	out := &calls{counters.Started(), map[string]*callmetrics.Usage{}}
	for _, u := range usages {
		out.usages[u.Kind+"/"+u.Name] = u
	}
	return out, nil
}

// of returns what was counted for a webhook or a policy, or nil. The API server counts webhooks by name,
// whatever their configuration, and policies without their bindings.
func (c *calls) of(link inspect.Listed) *callmetrics.Usage {
	if c == nil {
		return nil
	}
	switch link.Phase {
	case lint.MutatingWebhooks:
		return c.usages[callmetrics.Mutating+"/"+link.Entry]
	case lint.ValidatingWebhooks:
		return c.usages[callmetrics.Validating+"/"+link.Entry]
	case lint.MutatingPolicies:
		return c.usages[callmetrics.MutatingPolicy+"/"+link.Configuration]
	}
	return c.usages[callmetrics.ValidatingPolicy+"/"+link.Configuration]
}

// period says since when calls are counted.
func (c *calls) period() string {
	if c == nil {
		return ""
	}
	return "Calls are counted since the API server that answered started, at " + c.since.Format(timeFormat) + "."
}

// expiry is the day when the CA of a webhook expires.
func expiry(link inspect.Listed) string {
	if link.CAExpires.IsZero() {
		return ""
	}
	return link.CAExpires.Format(time.DateOnly)
}

// severityClass is the style of a finding.
func severityClass(s lint.Severity) string {
	switch s {
	case lint.Error:
		return "fix"
	case lint.Warning:
		return "note"
	}
	return "quiet"
}

// phaseTitle is the heading of a phase.
func phaseTitle(p lint.Phase) string { return strings.ToUpper(string(p[:1])) + string(p[1:]) }

// linksOf are the webhooks or policies of a phase, in order.
func linksOf(l *inspect.Listing, phase lint.Phase) []inspect.Listed {
	var out []inspect.Listed
	for _, link := range l.Links {
		if link.Phase == phase {
			out = append(out, link)
		}
	}
	return out
}
