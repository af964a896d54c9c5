// SPDX-License-Identifier: Apache-2.0

// Package calls has what an API server counted of webhooks and policies, for pages of the console.
package calls

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
)

// Counted is what the API server that answered counted, by kind and name. Nil has nothing.
type Counted struct {
	since  time.Time
	usages map[string]*callmetrics.Usage
}

// Read reads the metrics of the API server. The error is forbidden without the right to get them.
func Read(ctx context.Context, client rest.Interface) (*Counted, error) {
	counters, err := callmetrics.Read(ctx, client)
	if err != nil {
		return nil, err
	}
	usages, err := callmetrics.Usages(nil, counters)
	if err != nil {
		return nil, err
	}
	out := &Counted{counters.Started(), map[string]*callmetrics.Usage{}}
	for _, u := range usages {
		out.usages[u.Kind+"/"+u.Name] = u
	}
	return out, nil
}

// kindsOfPhase are the kinds of usages.
var kindsOfPhase = map[lint.Phase]string{
	lint.MutatingPolicies: callmetrics.MutatingPolicy, lint.MutatingWebhooks: callmetrics.Mutating,
	lint.ValidatingPolicies: callmetrics.ValidatingPolicy, lint.ValidatingWebhooks: callmetrics.Validating,
}

// Of returns what was counted for a webhook or a policy, or nil. The API server counts webhooks by name,
// whatever their configuration, and policies without their bindings. An operation, such as CREATE, counts
// apart where the API server does.
func (c *Counted) Of(link lint.Link, operation string) *callmetrics.Usage {
	if c == nil {
		return nil
	}
	policy, webhook, _ := strings.Cut(link.Name, "/")
	name := webhook
	if link.Phase == lint.MutatingPolicies || link.Phase == lint.ValidatingPolicies {
		name = policy
	}
	sum := c.usages[kindsOfPhase[link.Phase]+"/"+name]
	if sum == nil || operation == "" || len(sum.Operations) == 0 {
		return sum
	}
	for _, u := range sum.Operations {
		if u.Operation == operation {
			return u
		}
	}
	return nil
}

// Period says since when calls are counted.
func (c *Counted) Period() string {
	if c == nil {
		return ""
	}
	return "Calls are counted since the API server that answered started, at " + c.since.Format("2006-01-02 15:04 UTC") + "."
}

// All are the usages, those that requests waited for most first.
func (c *Counted) All() []*callmetrics.Usage {
	var out []*callmetrics.Usage
	for _, u := range c.usages {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *callmetrics.Usage) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}
