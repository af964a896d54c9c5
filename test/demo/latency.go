// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sallyport-io/sallyport/test/lab"
)

// calls is how many calls a histogram has seen, and how long they took in all.
type calls struct {
	count uint64
	total time.Duration
}

func (c calls) since(before calls) calls {
	return calls{c.count - before.count, c.total - before.total}
}

// mean is zero if there was no call.
func (c calls) mean() time.Duration {
	if c.count == 0 {
		return 0
	}
	return c.total / time.Duration(c.count)
}

// The two ends of a call.
const (
	apiServerHistogram = "apiserver_admission_webhook_admission_duration_seconds"
	sallyportHistogram = "sallyport_serving_request_duration_seconds"
)

// callsSeenBy the API server, and by Sallyport.
func (d *demo) callsSeen(ctx context.Context) (byAPIServer, bySallyport calls, err error) {
	data, err := d.cluster.client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return calls{}, calls{}, fmt.Errorf("metrics of the API server: %w", err)
	}
	if byAPIServer, err = sum(data, apiServerHistogram, "type", "admit"); err != nil {
		return calls{}, calls{}, err
	}
	if data, err = lab.Get(ctx, lab.Probes, d.server.Metrics+"/metrics"); err != nil {
		return calls{}, calls{}, fmt.Errorf("metrics of Sallyport: %w", err)
	}
	bySallyport, err = sum(data, sallyportHistogram, "path", "/apply-poddefault")
	return byAPIServer, bySallyport, err
}

// sum adds up the series of a histogram that have a label of a value. A histogram
// that has seen nothing yet may be absent.
func sum(text []byte, name, label, value string) (calls, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return calls{}, err
	}
	var out calls
	for _, metric := range families[name].GetMetric() {
		if hasLabel(metric, label, value) {
			out.count += metric.GetHistogram().GetSampleCount()
			out.total += time.Duration(metric.GetHistogram().GetSampleSum() * float64(time.Second))
		}
	}
	return out, nil
}

func hasLabel(metric *dto.Metric, name, value string) bool {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name && pair.GetValue() == value {
			return true
		}
	}
	return false
}
