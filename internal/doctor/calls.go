// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// callCounters are what an API server has counted about webhooks. It counts from its
// start on, and does not say when: only the difference of two readings does.
type callCounters struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

func readCallCounters(at time.Time, body []byte) (*callCounters, error) {
	families, err := parseMetrics(body)
	if err != nil {
		return nil, errors.New("the metrics of the API server cannot be read")
	}
	return &callCounters{at, families}, nil
}

// parseMetrics reads the text format of Prometheus.
func parseMetrics(body []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(body))
}

// started is when the API server was, by its own clock; zero if it does not say.
func (c *callCounters) started() time.Time {
	for _, m := range c.families["process_start_time_seconds"].GetMetric() {
		return time.Unix(int64(m.GetGauge().GetValue()), 0).UTC()
	}
	return time.Time{}
}

// sum adds up a counter for a webhook, of series whose labels are as wanted.
func (c *callCounters) sum(metric, webhook string, wanted map[string]string) (sum float64) {
	for _, m := range c.families[metric].GetMetric() {
		labels := map[string]string{}
		for _, label := range m.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		matches := labels["name"] == webhook
		for name, value := range wanted {
			if given, there := labels[name]; there && given != value {
				matches = false
			}
		}
		if matches {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

// callFailures are the ways in which a call fails that the API server counts.
var callFailures = []struct {
	metric       string
	labels       map[string]string
	text, remedy string
}{
	{
		"apiserver_admission_webhook_fail_open_count", nil, "calls of %s failed open",
		"find out why calls fail: see reachability and certificate above; what passed un-injected, docs/runbooks/SallyportFailsOpen.md lists",
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

func (c *callCounters) calls(webhooks []string) (sum float64) {
	for _, webhook := range webhooks {
		sum += c.sum("apiserver_admission_webhook_request_total", webhook, nil)
	}
	return sum
}

// failures are how often a call of one of the webhooks failed.
func (c *callCounters) failures(webhooks []string) (sum float64) {
	for _, webhook := range webhooks {
		for _, f := range callFailures {
			sum += c.sum(f.metric, webhook, f.labels)
		}
	}
	return sum
}

// judgeCalls says of the time between two readings whether calls failed in it. What
// failed before is told, with since when it has been counted, and is nothing to fix: a
// counter never goes down. If nobody called, it is not known how calls would end.
func judgeCalls(before, after *callCounters, webhooks []string) []Diagnosis {
	const check = "calls"
	if !before.started().Equal(after.started()) {
		return []Diagnosis{{Check: check, Status: Skipped, Text: "two API servers answered, or one that has restarted, and each counts for itself: run doctor again"}}
	}
	since := "since this API server started"
	if at := after.started(); !at.IsZero() {
		since += " at " + at.Format(time.RFC3339)
	}
	window := max(after.at.Sub(before.at).Round(time.Second), time.Second)
	var found []Diagnosis
	earlier := ""
	for _, webhook := range webhooks {
		for _, f := range callFailures {
			all := after.sum(f.metric, webhook, f.labels)
			text := fmt.Sprintf(f.text, webhook)
			if lately := all - before.sum(f.metric, webhook, f.labels); lately > 0 {
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
	calls := after.calls(webhooks)
	lately := calls - before.calls(webhooks)
	switch {
	case earlier == "":
		return []Diagnosis{{Check: check, Status: OK, Text: fmt.Sprintf("none of %.0f calls has failed %s", calls, since)}}
	case lately > 0:
		return []Diagnosis{{Check: check, Status: OK, Text: fmt.Sprintf("none of %.0f calls within the last %s has failed%s", lately, window, earlier)}}
	default:
		return []Diagnosis{{Check: check, Status: Skipped, Text: fmt.Sprintf("nobody called within the last %s%s; create a pod, or watch for longer with --window", window, earlier)}}
	}
}

// readCalls reads the API server's metrics.
func (d *doctor) readCalls(ctx context.Context) (*callCounters, error) {
	body, err := d.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	return readCallCounters(time.Now(), body)
}

// checkCalls compares what the API server counts now with what it counted when doctor
// began. If there were failures, it goes on watching for --window: whether they are over
// cannot be seen otherwise.
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
		var after *callCounters
		if after, err = d.readCalls(ctx); err != nil {
			break
		}
		total := after.failures(webhooks)
		if left := d.Window - after.at.Sub(before.at); total > 0 && total == before.failures(webhooks) && left > 0 {
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
	d.unread(check, "get /metrics of the API server", err)
}
