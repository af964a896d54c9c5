// SPDX-License-Identifier: Apache-2.0

package callmetrics

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Print prints a table. A window of 0 means since the start of the API server.
func Print(out io.Writer, usages []*Usage, window time.Duration) error {
	period := "since the API server started"
	if window > 0 {
		period = "within " + window.Round(time.Second).String()
	}
	if len(usages) == 0 {
		_, err := fmt.Fprintf(out, "no webhook or policy was asked %s\n", period)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tKIND\tOPERATION\tCALLS\tP50\tP99\tWAITED\tREJECTED\tFAILED\tFAILED OPEN") // Flush returns the error
	row := func(u *Usage, name, kind, operation string) {
		_, _ = fmt.Fprintln(table, strings.Join([]string{
			name, kind, operation, count(u.Calls), Duration(u.P50), Duration(u.P99), Duration(u.Seconds), count(u.Rejected), count(u.Failed), count(u.FailedOpen),
		}, "\t"))
	}
	for _, u := range usages {
		if len(u.Operations) == 1 {
			row(u, manifest.PrintableLine(u.Name), manifest.PrintableLine(u.Kind), manifest.PrintableLine(u.Operations[0].Operation))
			continue
		}
		row(u, manifest.PrintableLine(u.Name), manifest.PrintableLine(u.Kind), "")
		for _, part := range u.Operations {
			row(part, "", "", manifest.PrintableLine(part.Operation))
		}
	}
	_, _ = fmt.Fprintf(table, "\n")
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s, %s\n", cli.Count(len(usages), "webhook or policy", "webhooks and policies"), period)
	return err
}

func count(n float64) string { return fmt.Sprintf("%.0f", n) }

// Duration formats seconds with at most three digits.
func Duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
