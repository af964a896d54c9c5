// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

// Latencies from which a webhook counts as slow. Many pods are created at a time, and each
// create waits.
const (
	slowForPods   = 200 * time.Millisecond
	slowForOthers = 500 * time.Millisecond
	// enoughCalls is the least number of calls for a meaningful percentile. With fewer calls,
	// the mean counts.
	enoughCalls = 100
)

// entry is a webhook of any configuration, with the fields that matter for latency.
type entry struct {
	kind, name  string
	pods        bool // its rules cover pods
	unnarrowed  bool // it has no match conditions and no objectSelector
	description string
}

// checkLatency names the slow webhooks in the cluster, whoever owns them: each API request that
// a webhook covers waits for it.
func (d *doctor) checkLatency(ctx context.Context) {
	const check = "latency"
	if d.callsErr != nil {
		return // checkCalls reported it
	}
	usages, err := callmetrics.Usages(nil, d.calls)
	if err != nil {
		d.Unread(check, "get /metrics of the API server", err)
		return
	}
	entries, err := d.entries(ctx)
	if err != nil {
		d.Unread(check, "list mutatingwebhookconfigurations and validatingwebhookconfigurations", err)
		return
	}
	d.Checks = append(d.Checks, judgeLatency(usages, entries)...)
}

// judgeLatency reports the slow webhooks that still exist.
func judgeLatency(usages []*callmetrics.Usage, entries []entry) []Diagnosis {
	const check = "latency"
	var found []Diagnosis
	asked := 0
	for _, u := range usages {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.kind == u.Kind && e.name == u.Name })
		if i < 0 || u.Calls == 0 {
			continue
		}
		asked++
		e, limit := entries[i], slowForOthers
		if e.pods {
			limit = slowForPods
		}
		seconds, what := u.P99, "99 of 100 calls take up to"
		if u.Calls < enoughCalls {
			seconds, what = u.Mean, "a call takes on average"
		}
		if seconds <= limit.Seconds() {
			continue
		}
		remedy := "find out why its server is slow; 'sallyport top' shows whether it still is"
		if e.unnarrowed {
			remedy = "narrow it with matchConditions or an objectSelector, so that fewer requests wait for it; " + remedy
		}
		found = append(found, Diagnosis{Check: check, Status: Note, Remedy: remedy,
			Text: fmt.Sprintf("%s %s: %s %s; more than %s makes %s slow", e.description, e.name, what, inTime(seconds), limit, slowed(e.pods))})
	}
	switch {
	case found != nil:
		return found
	case asked == 0:
		return []Diagnosis{{Check: check, Status: Skipped, Text: "the API server that answers has called no webhook yet"}}
	}
	return []Diagnosis{{Check: check, Status: OK, Text: fmt.Sprintf("none of %d webhooks that were called is slow", asked)}}
}

func inTime(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

func slowed(pods bool) string {
	if pods {
		return "the creation of pods"
	}
	return "API requests"
}

// entries returns the webhooks of all configurations.
func (d *doctor) entries(ctx context.Context) ([]entry, error) {
	api := d.Client.AdmissionregistrationV1()
	mutating, err := api.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	validating, err := api.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []entry
	add := func(kind, configuration, name string, rules []admissionregistrationv1.RuleWithOperations, conditions int, selector *metav1.LabelSelector) {
		out = append(out, entry{
			kind: kind, name: name, pods: coversPods(rules),
			unnarrowed:  conditions == 0 && (selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0),
			description: kind + "WebhookConfiguration " + configuration,
		})
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			add(callmetrics.Mutating, c.Name, w.Name, w.Rules, len(w.MatchConditions), w.ObjectSelector)
		}
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			add(callmetrics.Validating, c.Name, w.Name, w.Rules, len(w.MatchConditions), w.ObjectSelector)
		}
	}
	return out, nil
}

func coversPods(rules []admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return matcher.Covers(rule, "", "pods") })
}
