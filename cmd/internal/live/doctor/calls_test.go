// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
)

// TestDoctorTellsWhatFailsNowFromWhatFailedBefore: the API server's counters never go down. An
// outage that is over must not need a fix until the API server restarts.
func TestDoctorTellsWhatFailsNowFromWhatFailedBefore(t *testing.T) {
	const webhook, other = "poddefault.sallyport.io", "other.example.com"
	type counts struct{ started, calls, open, refused, conditions int }
	reading := func(c counts, at time.Time) *callmetrics.Counters {
		text := fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", 1_800_000_000+c.started)
		for metric, lines := range map[string]string{
			"apiserver_admission_webhook_request_total": fmt.Sprintf("{code=\"200\",name=%q} %d\n", webhook, c.calls),
			"apiserver_admission_webhook_fail_open_count": fmt.Sprintf("{name=%q,type=\"admit\"} %d\n", webhook, c.open) +
				fmt.Sprintf("{name=%q,type=\"admit\"} 7\n", other),
			"apiserver_admission_webhook_rejection_count": fmt.Sprintf("{error_type=\"calling_webhook_error\",name=%q} %d\n", webhook, c.refused) +
				fmt.Sprintf("{error_type=\"no_error\",name=%q} 9\n", webhook), // denials
			"apiserver_admission_match_condition_evaluation_errors_total": fmt.Sprintf("{kind=\"webhook\",name=%q} %d\n", webhook, c.conditions),
		} {
			text += "# TYPE " + metric + " counter\n"
			for line := range strings.Lines(lines) {
				text += metric + line
			}
		}
		out, err := callmetrics.Parse(at, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const since = "since this API server started at 2027-01-15T08:00:00Z"
	for name, tc := range map[string]struct {
		before, after counts
		want          []string // status: text
	}{
		"nothing has ever failed":   {counts{calls: 3}, counts{calls: 3}, []string{"ok: none of 3 calls has failed " + since}},
		"calls fail open now":       {counts{calls: 3}, counts{calls: 5, open: 2}, []string{"fix: 2 calls of " + webhook + " failed open within the last 10s, 2 " + since}},
		"more fail than before":     {counts{calls: 9, refused: 4}, counts{calls: 10, refused: 5}, []string{"fix: 1 requests were refused because " + webhook + " did not answer within the last 10s, 5 " + since}},
		"what failed is over":       {counts{calls: 9, open: 4}, counts{calls: 12, open: 4}, []string{"ok: none of 3 calls within the last 10s has failed; 4 calls of " + webhook + " failed open earlier, " + since}},
		"nobody calls":              {counts{calls: 9, open: 4}, counts{calls: 9, open: 4}, []string{"skip: no calls within the last 10s; 4 calls of " + webhook + " failed open earlier, " + since + "; create a pod, or watch for longer with --window"}},
		"another API server":        {counts{calls: 9, open: 4}, counts{started: 5}, []string{"skip: two API servers answered, or one that has restarted, and each has counters of its own: run doctor again"}},
		"one thing over, one not":   {counts{open: 4}, counts{open: 4, conditions: 1}, []string{"fix: 1 match conditions of " + webhook + " could not be evaluated within the last 10s, 1 " + since}},
		"denials are not failures":  {counts{calls: 1}, counts{calls: 2}, []string{"ok: none of 2 calls has failed " + since}},
		"the first call ever fails": {counts{}, counts{refused: 1}, []string{"fix: 1 requests were refused because " + webhook + " did not answer within the last 10s, 1 " + since}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			var got []string
			for _, d := range judgeCalls(reading(tc.before, start), reading(tc.after, start.Add(10*time.Second)), []string{webhook}) {
				got = append(got, string(d.Status)+": "+d.Text)
				if (d.Status == Fix) != (d.Remedy != "") {
					t.Errorf("%s has the remedy %q", d.Status, d.Remedy)
				}
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}
