// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
)

func TestLatencyNamesSlowWebhooksAndHowToNarrowThem(t *testing.T) {
	entries := []entry{
		{kind: callmetrics.Mutating, name: "pods.example.com", pods: true, unnarrowed: true, description: "MutatingWebhookConfiguration pods"},
		{kind: callmetrics.Validating, name: "others.example.com", description: "ValidatingWebhookConfiguration others"},
	}
	usage := func(kind, name string, calls, mean, p99 float64) *callmetrics.Usage {
		return &callmetrics.Usage{Kind: kind, Name: name, Calls: calls, Mean: mean, P99: p99}
	}
	for _, tc := range []struct {
		name   string
		usages []*callmetrics.Usage
		status Status
		text   string // substring of the first diagnosis
	}{
		{"nobody was called", nil, Skipped, "no webhook"},
		{"both are quick", []*callmetrics.Usage{usage(callmetrics.Mutating, "pods.example.com", 200, 0.01, 0.19), usage(callmetrics.Validating, "others.example.com", 200, 0.3, 0.49)}, OK, "none of 2 webhooks"},
		{"slow for pods", []*callmetrics.Usage{usage(callmetrics.Mutating, "pods.example.com", 200, 0.01, 0.21)}, Note, "MutatingWebhookConfiguration pods pods.example.com: 99 of 100 calls take up to 210ms; more than 200ms"},
		{"slow for others", []*callmetrics.Usage{usage(callmetrics.Validating, "others.example.com", 200, 0.01, 0.6)}, Note, "more than 500ms makes API requests slow"},
		{"of few calls the mean counts", []*callmetrics.Usage{usage(callmetrics.Mutating, "pods.example.com", 3, 0.1, 0.49)}, OK, "none of 1"},
		{"a webhook that is gone", []*callmetrics.Usage{usage(callmetrics.Mutating, "gone.example.com", 200, 5, 9)}, Skipped, "no webhook"},
		{"a policy", []*callmetrics.Usage{usage(callmetrics.ValidatingPolicy, "pods.example.com", 200, 5, 9)}, Skipped, "no webhook"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := judgeLatency(tc.usages, entries)
			if len(got) != 1 || got[0].Status != tc.status || !strings.Contains(got[0].Text, tc.text) {
				t.Fatalf("got %+v", got)
			}
			if narrow := strings.Contains(got[0].Remedy, "matchConditions"); tc.status == Note && narrow != strings.Contains(tc.text, "pods pods") {
				t.Errorf("remedy %q", got[0].Remedy)
			}
		})
	}
}

func TestNotesAreNothingToFix(t *testing.T) {
	if !(&Report{Checks: []Diagnosis{{Status: Note}}}).Sound() {
		t.Error("a note is not sound")
	}
}

func TestRulesThatCoverPods(t *testing.T) {
	for _, tc := range []struct {
		group, resource string
		want            bool
	}{
		{"", "pods", true}, {"*", "*", true}, {"", "*/*", true}, {"", "pods/eviction", false}, {"apps", "pods", false}, {"", "services", false},
	} {
		rules := []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{tc.group}, Resources: []string{tc.resource}}}}
		if got := coversPods(rules); got != tc.want {
			t.Errorf("%q %q: %v", tc.group, tc.resource, got)
		}
	}
}
