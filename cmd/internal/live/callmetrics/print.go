// SPDX-License-Identifier: Apache-2.0

package callmetrics

import (
	"fmt"
	"io"
	"time"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Print prints a table. A window of 0 means since the start of the API server.
func Print(out io.Writer, usages []*Usage, window time.Duration) error {
	text := terminal.NewText(out)
	line := func(format string, args ...any) { text.Line(0, terminal.Plain.Of(fmt.Sprintf(format, args...))) }
	period := "since the API server started"
	if window > 0 {
		period = "within " + window.Round(time.Second).String()
	}
	if len(usages) == 0 {
		line("no webhook or policy was asked %s", period)
		return text.Flush()
	}
	var rows [][]terminal.Span
	row := func(u *Usage, name, kind, operation string) {
		rows = append(rows, []terminal.Span{
			terminal.Plain.Of(name), terminal.Plain.Of(kind), terminal.Plain.Of(operation), terminal.Plain.Of(count(u.Calls)), terminal.Plain.Of(Duration(u.P50)),
			terminal.Plain.Of(Duration(u.P99)), terminal.Plain.Of(Duration(u.Seconds)), counted(u.Rejected, terminal.Warn), counted(u.Failed, terminal.Bad), counted(u.FailedOpen, terminal.Bad),
		})
	}
	rows = append(rows, terminal.Heading.Row("NAME", "KIND", "OPERATION", "CALLS", "P50", "P99", "WAITED", "REJECTED", "FAILED", "FAILED OPEN"))
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
	text.Table(2, rows...)
	line("")
	line("%s, %s", cli.Count(len(usages), "webhook or policy", "webhooks and policies"), period)
	return text.Flush()
}

// counted is a number in a style, if it is not 0.
func counted(n float64, style terminal.Style) terminal.Span {
	if n == 0 {
		style = terminal.Plain
	}
	return style.Of(count(n))
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
