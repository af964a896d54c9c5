// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/callmetrics"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/calls"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
)

// showWebhooks shows all webhooks and policies of the cluster.
func showWebhooks(ctx context.Context, v *visit) (templ.Component, error) {
	listing, err := inspect.List(ctx, v.cluster)
	if err != nil {
		return nil, err
	}
	counted, err := v.calls(ctx)
	if err != nil {
		return nil, err
	}
	v.data = listing
	return webhooks(v, listing, counted), nil
}

// calls are what the API server counted. They are nil if the user may not read that.
func (v *visit) calls(ctx context.Context) (*calls.Counted, error) {
	counted, err := calls.Read(ctx, v.cluster.Client.Discovery().RESTClient())
	return counted, v.hide("get the metrics of the API server: calls and latency", err)
}

// expiry is the day when the CA of a webhook expires.
func expiry(link inspect.Listed) string {
	if link.CAExpires.IsZero() {
		return ""
	}
	return link.CAExpires.Format(time.DateOnly)
}

// severityClass is the style of a finding.
func severityClass(s lint.Severity) string {
	switch s {
	case lint.Error:
		return "fix"
	case lint.Warning:
		return "note"
	}
	return "quiet"
}

// phaseTitle is the heading of a phase.
func phaseTitle(p lint.Phase) string { return strings.ToUpper(string(p[:1])) + string(p[1:]) }

// webhookRows are the webhooks or policies of a phase, in order.
func webhookRows(l *inspect.Listing, phase lint.Phase, c *calls.Counted) [][]cell {
	var out [][]cell
	for _, link := range l.Links {
		if link.Phase == phase {
			out = append(out, []cell{
				{{text: link.Configuration}, {class: "quiet", text: link.Entry}, {class: "code", text: link.Server}},
				{{text: whenItFails(link.Link)}}, counted(c, c.Of(link.Link, "")), {{text: expiry(link)}}, findingPieces(link.Findings),
			})
		}
	}
	return out
}

// pathOf draws all webhooks and policies of the cluster.
func pathOf(l *inspect.Listing, c *calls.Counted) string {
	var list []draw.Stage
	for _, phase := range lint.Phases() {
		stage := stageOf(phase)
		for i := range l.Links {
			if link := &l.Links[i]; link.Phase == phase {
				class := ""
				for _, f := range link.Findings {
					if class != "fix" {
						class = severityClass(f.Severity)
					}
				}
				stage.Stations = append(stage.Stations, station(c, &link.Link, c.Of(link.Link, ""), class))
			}
		}
		list = append(list, stage)
	}
	return draw.Path("The way of a request through all webhooks and policies", list)
}

// stageOf is a phase without stations. Only what mutates is called one after the other.
func stageOf(phase lint.Phase) draw.Stage {
	return draw.Stage{Title: phaseTitle(phase), Serial: phase == lint.MutatingWebhooks || phase == lint.MutatingPolicies}
}

// station draws a webhook or a policy with what the API server counted.
func station(c *calls.Counted, link *lint.Link, u *callmetrics.Usage, class string) draw.Station {
	_, name, _ := strings.Cut(link.Name, "/")
	s := draw.Station{Name: cmp.Or(name, link.Name), Note: whenItFails(*link), Class: class, Reinvoked: link.Reinvoked}
	if u != nil && u.Calls > 0 {
		s.Note = "99 % in " + callmetrics.Duration(u.P99)
		if failed := u.Failed + u.FailedOpen; failed > 0 {
			s.Note, s.Class = fmt.Sprintf("%s, %.0f failed", s.Note, failed), "fix"
		}
	}
	return s
}

// findingPieces are what the rules found.
func findingPieces(list []lint.Finding) cell {
	var out cell
	for _, f := range list {
		out = append(out, piece{
			class: severityClass(f.Severity), text: string(f.Severity) + ": " + f.Message,
			more: strings.TrimSpace(f.Object+" "+f.Webhook) + ": " + f.Fix, href: report.DocsURI("lint.md#" + f.Rule), link: f.Rule,
		})
	}
	return out
}
