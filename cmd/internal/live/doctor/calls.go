// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
)

// callFailures are the call failures that the API server counts.
var callFailures = []struct {
	metric       string
	labels       map[string]string
	text, remedy string
}{
	{
		"apiserver_admission_webhook_fail_open_count", nil, "calls of %s failed open",
		"find out why calls fail: see reachability and certificate above; for pods that passed un-injected, see docs/runbooks/SallyportFailsOpen.md",
	},
	{
		"apiserver_admission_webhook_rejection_count", map[string]string{"error_type": "calling_webhook_error"},
		"requests were refused because %s did not answer", "find out why calls fail: see reachability and certificate above",
	},
	{
		"apiserver_admission_match_condition_evaluation_errors_total", nil, "match conditions of %s could not be evaluated",
		"see 'sallyport lint --cluster --rule match-conditions'",
	},
}

func calls(c *callmetrics.Counters, webhooks []string) (sum float64) {
	for _, webhook := range webhooks {
		sum += c.Sum("apiserver_admission_webhook_request_total", webhook, nil)
	}
	return sum
}

// failures sums the failed calls of the given webhooks.
func failures(c *callmetrics.Counters, webhooks []string) (sum float64) {
	for _, webhook := range webhooks {
		for _, f := range callFailures {
			sum += c.Sum(f.metric, webhook, f.labels)
		}
	}
	return sum
}

// judgeCalls reports whether calls failed between two readings. Earlier failures are a note,
// with the time since when they have been counted, and need no fix: counters never go down.
// Without calls between the readings, the outcome of calls is unknown.
func judgeCalls(before, after *callmetrics.Counters, webhooks []string) []Diagnosis {
	const check = "calls"
	if !before.Started().Equal(after.Started()) {
		return []Diagnosis{{Check: check, Status: Skipped, Text: "two API servers answered, or one that has restarted, and each has counters of its own: run doctor again"}}
	}
	since := "since this API server started"
	if at := after.Started(); !at.IsZero() {
		since += " at " + at.Format(time.RFC3339)
	}
	window := max(after.At.Sub(before.At).Round(time.Second), time.Second)
	var found []Diagnosis
	earlier := ""
	for _, webhook := range webhooks {
		for _, f := range callFailures {
			all := after.Sum(f.metric, webhook, f.labels)
			text := fmt.Sprintf(f.text, webhook)
			if lately := all - before.Sum(f.metric, webhook, f.labels); lately > 0 {
				found = append(found, Diagnosis{Check: check, Status: Fix, Remedy: f.remedy,
					Text: fmt.Sprintf("%.0f %s within the last %s, %.0f %s", lately, text, window, all, since)})
			} else if all > 0 {
				earlier += fmt.Sprintf("; %.0f %s earlier, %s", all, text, since)
			}
		}
	}
	if found != nil {
		return found
	}
	all := calls(after, webhooks)
	lately := all - calls(before, webhooks)
	switch {
	case earlier == "":
		return []Diagnosis{{Check: check, Status: OK, Text: fmt.Sprintf("none of %.0f calls has failed %s", all, since)}}
	case lately > 0:
		return []Diagnosis{{Check: check, Status: OK, Text: fmt.Sprintf("none of %.0f calls within the last %s has failed%s", lately, window, earlier)}}
	default:
		return []Diagnosis{{Check: check, Status: Skipped, Text: fmt.Sprintf("no calls within the last %s%s; create a pod, or watch for longer with --window", window, earlier)}}
	}
}

// readCalls reads the API server's metrics.
func (d *doctor) readCalls(ctx context.Context) (*callmetrics.Counters, error) {
	return callmetrics.Read(ctx, d.Client.Discovery().RESTClient())
}

// checkCalls compares the API server's current counters with those from doctor's start. If
// calls have failed, it keeps watching for --window, because a single reading cannot show
// whether they still fail.
func (d *doctor) checkCalls(ctx context.Context) {
	const check = "calls"
	before, err := d.calls, d.callsErr
	var webhooks []string
	for _, w := range d.webhooks {
		if !slices.Contains(webhooks, w.Name) {
			webhooks = append(webhooks, w.Name)
		}
	}
	for err == nil {
		var after *callmetrics.Counters
		if after, err = d.readCalls(ctx); err != nil {
			break
		}
		total := failures(after, webhooks)
		if left := d.Window - after.At.Sub(before.At); total > 0 && total == failures(before, webhooks) && left > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(left, time.Second)):
			}
			continue
		}
		d.Checks = append(d.Checks, judgeCalls(before, after, webhooks)...)
		return
	}
	d.Unread(check, "get /metrics of the API server", err)
}
