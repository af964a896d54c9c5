// SPDX-License-Identifier: Apache-2.0

package callmetrics

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// The kinds of a [Usage].
const (
	Mutating         = "Mutating"
	Validating       = "Validating"
	MutatingPolicy   = "MutatingAdmissionPolicy"
	ValidatingPolicy = "ValidatingAdmissionPolicy"
)

// A Usage is the cost of a webhook or policy for API requests.
type Usage struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // Mutating, Validating, or a kind of policy
	// Operation is empty for the sum over all operations, which Operations lists. The API
	// server does not count policies by operation.
	Operation  string   `json:"operation,omitempty"`
	Operations []*Usage `json:"operations,omitempty"`

	Calls float64 `json:"calls"`
	// Mean, P50 and P99 are in seconds. Percentiles are interpolated within the buckets of the
	// API server's histogram, and never exceed its highest bound.
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	// Seconds is the total time that API requests waited.
	Seconds float64 `json:"seconds"`
	// Rejected are calls that denied the request. The API server counts validations of a policy that cannot be
	// evaluated as such too, unless it ran out of budget or does not compile.
	Rejected float64 `json:"rejected"`
	// Failed counts failed calls that denied the request. It includes timeouts, which the API
	// server does not count separately.
	Failed float64 `json:"failed"`
	// FailedOpen counts failed calls whose request was admitted: failure policy Ignore. The API
	// server does not count them by operation.
	FailedOpen float64 `json:"failedOpen"`

	buckets map[float64]float64 // cumulative counts by upper bound
}

// ErrOtherServer is returned if the readings are from two API servers, or the API server
// restarted in between.
var ErrOtherServer = errors.New("the metrics are those of another kube-apiserver than before, or it has restarted: each has counters of its own")

// Usages returns the usage between two readings, longest total wait first. If before is nil, it
// counts from the start of the API server.
func Usages(before, after *Counters) ([]*Usage, error) {
	if before != nil && !before.Started().Equal(after.Started()) {
		return nil, ErrOtherServer
	}
	t := table{}
	t.add(after, 1)
	if before != nil {
		t.add(before, -1)
	}
	return t.sorted(), nil
}

type key struct{ kind, name, operation string }

// table holds the usages by key. An empty operation holds the sums.
type table map[key]*Usage

func (t table) add(c *Counters, sign float64) {
	kinds := map[string]string{"admit": Mutating, "validating": Validating}
	of := func(labels map[string]string) []*Usage {
		kind := kinds[labels["type"]]
		usages := []*Usage{t.at(key{kind, labels["name"], ""})}
		if operation := labels["operation"]; operation != "" {
			usages = append(usages, t.at(key{kind, labels["name"], operation}))
		}
		return usages
	}
	for _, m := range c.families["apiserver_admission_webhook_admission_duration_seconds"].GetMetric() {
		for _, u := range of(labelsOf(m)) {
			u.observe(m.GetHistogram(), sign)
		}
	}
	for _, m := range c.families["apiserver_admission_webhook_rejection_count"].GetMetric() {
		labels := labelsOf(m)
		for _, u := range of(labels) {
			if labels["error_type"] == "no_error" {
				u.Rejected += sign * m.GetCounter().GetValue()
			} else {
				u.Failed += sign * m.GetCounter().GetValue()
			}
		}
	}
	for _, m := range c.families["apiserver_admission_webhook_fail_open_count"].GetMetric() {
		for _, u := range of(labelsOf(m)) {
			u.FailedOpen += sign * m.GetCounter().GetValue()
		}
	}
	for kind, metric := range map[string]string{
		MutatingPolicy:   "apiserver_mutating_admission_policy_check_duration_seconds",
		ValidatingPolicy: "apiserver_validating_admission_policy_check_duration_seconds",
	} {
		for _, m := range c.families[metric].GetMetric() {
			labels := labelsOf(m)
			u := t.at(key{kind, labels["policy"], ""})
			u.observe(m.GetHistogram(), sign)
			count := sign * float64(m.GetHistogram().GetSampleCount())
			switch {
			// A validation that is not met has the type invalid_error too: k8s.io/apiserver's metrics.ErrorType.
			case labels["enforcement_action"] == "deny" && slices.Contains([]string{"", "no_error", "invalid_error"}, labels["error_type"]) && kind == ValidatingPolicy:
				u.Rejected += count
			case labels["error_type"] != "" && labels["error_type"] != "no_error" && (kind == MutatingPolicy || labels["enforcement_action"] == "deny" || labels["error_type"] != "invalid_error"):
				u.Failed += count
			case labels["enforcement_action"] == "deny":
				u.Rejected += count
			}
		}
	}
}

func (t table) at(k key) *Usage {
	if t[k] == nil {
		t[k] = &Usage{Name: k.name, Kind: k.kind, Operation: k.operation, buckets: map[float64]float64{}}
	}
	return t[k]
}

func (u *Usage) observe(h *dto.Histogram, sign float64) {
	u.Calls += sign * float64(h.GetSampleCount())
	u.Seconds += sign * h.GetSampleSum()
	for _, b := range h.GetBucket() {
		u.buckets[b.GetUpperBound()] += sign * float64(b.GetCumulativeCount())
	}
}

func (t table) sorted() []*Usage {
	var out []*Usage
	for k, u := range t {
		if u.Calls <= 0 && u.FailedOpen <= 0 && u.Failed <= 0 {
			continue
		}
		if u.Calls > 0 {
			u.Mean, u.P50, u.P99 = u.Seconds/u.Calls, u.quantile(0.5), u.quantile(0.99)
		}
		if k.operation == "" {
			out = append(out, u)
		} else {
			sum := t.at(key{k.kind, k.name, ""})
			sum.Operations = append(sum.Operations, u)
		}
	}
	slowest := func(a, b *Usage) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Operation, b.Operation))
	}
	for _, u := range out {
		slices.SortFunc(u.Operations, slowest)
	}
	slices.SortFunc(out, slowest)
	return out
}

// quantile interpolates like Prometheus' histogram_quantile: linearly within a bucket, and the
// highest bound for values above it.
func (u *Usage) quantile(q float64) float64 {
	rank := q * u.Calls
	lower, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(u.buckets)) {
		if math.IsInf(bound, 1) {
			break
		}
		count := u.buckets[bound]
		if count >= rank && count > below {
			return lower + (bound-lower)*(rank-below)/(count-below)
		}
		lower, below = bound, count
	}
	return lower
}

// A Bucket has the number of calls that took at most UpTo seconds and more than the bucket before. The last one is
// infinite.
type Bucket struct{ UpTo, Calls float64 }

// Distribution returns the buckets of the API server's histogram, which sum up to the calls.
func (u *Usage) Distribution() []Bucket {
	var out []Bucket
	below := 0.0
	for _, bound := range slices.Sorted(maps.Keys(u.buckets)) {
		if !math.IsInf(bound, 1) {
			out = append(out, Bucket{bound, u.buckets[bound] - below})
			below = u.buckets[bound]
		}
	}
	return append(out, Bucket{math.Inf(1), u.Calls - below})
}
