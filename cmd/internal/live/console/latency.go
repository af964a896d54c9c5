// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
)

// maxDistributions limits the pictures of distributions: the table has all webhooks and policies.
const maxDistributions = 6

// showLatency shows which webhooks and policies API requests wait for, and how long.
func showLatency(ctx context.Context, v *visit) (templ.Component, error) {
	counted, err := v.calls(ctx)
	if err != nil {
		return nil, err
	}
	if counted == nil {
		return nothing("The latency of webhooks is in the metrics of the API server, which you may not read: the right is get on the path /metrics."), nil
	}
	usages := counted.All()
	v.data = usages
	b := block{
		heading: "What API requests wait for", text: "In the order of the whole time that requests waited. " + counted.Period(),
		columns: []string{"Name", "Kind", "Calls", "Waited in all", "Half within", "99 % within", "Refused", "Failed"},
		empty:   "The API server has called no webhook and evaluated no policy since it started.",
	}
	list := []block{b}
	for i, u := range usages {
		failed := number(int(u.Failed + u.FailedOpen))
		if u.Failed+u.FailedOpen > 0 {
			failed = cell{{class: "fix", text: fmt.Sprintf("%.0f failed, %.0f failed open", u.Failed, u.FailedOpen), key: strconv.Itoa(int(u.Failed + u.FailedOpen))}}
		}
		list[0].rows = append(list[0].rows, []cell{
			text(u.Name), text(u.Kind), number(int(u.Calls)), seconds(u.Seconds), seconds(u.P50), seconds(u.P99), number(int(u.Rejected)), failed,
		})
		if i < maxDistributions {
			list = append(list, distribution(u))
		}
	}
	return blocks(v, list), nil
}

// seconds is a cell with a duration.
func seconds(s float64) cell {
	return cell{{class: "number", text: callmetrics.Duration(s), key: strconv.FormatFloat(s, 'g', -1, 64)}}
}

// distribution are the calls by how long they took.
func distribution(u *callmetrics.Usage) block {
	b := block{heading: u.Name + ": calls by latency", columns: []string{"Latency", "Calls", "Share"}}
	var bins []draw.Bin
	lower := 0.0
	for _, bucket := range u.Distribution() {
		bin := draw.Bin{Bound: "≤" + callmetrics.Duration(bucket.UpTo), Count: bucket.Calls, Class: latencyClass(lower)}
		between := "up to " + callmetrics.Duration(bucket.UpTo)
		if math.IsInf(bucket.UpTo, 1) {
			bin.Bound, between = "more", "more than "+callmetrics.Duration(lower)
		}
		lower = bucket.UpTo
		if bins = append(bins, bin); bucket.Calls > 0 {
			b.rows = append(b.rows, []cell{text(between), number(int(bucket.Calls)), text(strconv.FormatFloat(100*bucket.Calls/u.Calls, 'f', 1, 64) + " %")})
		}
	}
	b.picture = draw.Histogram("Calls of "+u.Name+" by latency, on a logarithmic scale", bins)
	return b
}

// latencyClass colors latencies: people notice what takes longer than 100 ms, and 1 s is a tenth of the default timeout.
func latencyClass(seconds float64) string {
	switch {
	case seconds < 0.1:
		return "ok"
	case seconds < 1:
		return "note"
	}
	return "fix"
}
