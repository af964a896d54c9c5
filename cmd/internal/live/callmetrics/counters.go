// SPDX-License-Identifier: Apache-2.0

// Package callmetrics reads kube-apiserver's admission metrics: calls of webhooks and
// evaluations of policies, with their latencies and outcomes
// (https://kubernetes.io/docs/reference/instrumentation/metrics/).
package callmetrics

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// Counters is one reading of an API server's metrics. Counters count from the start of the API
// server, so only the difference between two readings covers a known period.
type Counters struct {
	At       time.Time
	families map[string]*dto.MetricFamily
}

// Read reads the metrics of the API server that answers. It needs permission to get the
// non-resource URL /metrics.
func Read(ctx context.Context, client rest.Interface) (*Counters, error) {
	body, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	return Parse(time.Now(), body)
}

// Parse parses metrics in Prometheus' text format.
func Parse(at time.Time, body []byte) (*Counters, error) {
	families, err := Families(body, "process_start_time_seconds", "apiserver_admission_webhook_", "apiserver_admission_match_condition_",
		"apiserver_mutating_admission_policy_", "apiserver_validating_admission_policy_")
	if err != nil {
		return nil, errors.New("the metrics of the API server cannot be read")
	}
	return &Counters{at, families}, nil
}

// Families parses the families whose names have one of the prefixes from Prometheus' text
// format. It skips the others: an API server has megabytes of them. If there are no such
// families, it parses the whole body, so that a body that contains no metrics is an error.
func Families(body []byte, prefixes ...string) (map[string]*dto.MetricFamily, error) {
	var wanted []byte
	for line := range bytes.Lines(body) {
		name := bytes.TrimPrefix(bytes.TrimPrefix(line, []byte("# TYPE ")), []byte("# HELP "))
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return bytes.HasPrefix(name, []byte(prefix)) }) {
			wanted = append(wanted, line...)
		}
	}
	if wanted == nil {
		wanted = body
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(wanted))
}

// Started returns when the API server started, by its own clock; zero if unknown.
func (c *Counters) Started() time.Time {
	for _, m := range c.families["process_start_time_seconds"].GetMetric() {
		return time.Unix(int64(m.GetGauge().GetValue()), 0).UTC()
	}
	return time.Time{}
}

// Sum sums a webhook's counter over all series with the wanted labels. A missing label matches.
func (c *Counters) Sum(metric, webhook string, wanted map[string]string) (sum float64) {
	for _, m := range c.families[metric].GetMetric() {
		labels := labelsOf(m)
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

func labelsOf(m *dto.Metric) map[string]string {
	labels := make(map[string]string, len(m.GetLabel()))
	for _, label := range m.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}
