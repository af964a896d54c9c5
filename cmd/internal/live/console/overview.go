// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// showOverview shows what doctor says, worst first, and the calls of the server's webhooks.
func showOverview(ctx context.Context, v *visit) (templ.Component, error) {
	registered, err := v.cluster.Webhooks(ctx, v.Doctor.Registration.Name)
	if err := v.hide("get webhook configurations", err); err != nil {
		return nil, err
	}
	counted, err := v.calls(ctx)
	if err != nil {
		return nil, err
	}
	options := v.Doctor
	options.Window = 0 // a page does not wait for further failures
	found, err := doctor.Run(ctx, v.config, options)
	if err != nil {
		return nil, err
	}
	order := []doctor.Status{doctor.Fix, doctor.Unknown, doctor.Note, doctor.OK, doctor.Skipped}
	slices.SortStableFunc(found.Checks, func(a, b doctor.Diagnosis) int {
		return cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status))
	})
	return overview(v, found, summary(found, order), registered, counted), nil
}

// statusWords are the outcomes of checks for people.
var statusWords = map[doctor.Status]string{doctor.OK: "ok", doctor.Fix: "to fix", doctor.Unknown: "unknown", doctor.Note: "to look at", doctor.Skipped: "not checked"}

// statusClasses are the styles of outcomes.
var statusClasses = map[doctor.Status]string{doctor.OK: "ok", doctor.Fix: "fix", doctor.Unknown: "note", doctor.Note: "note", doctor.Skipped: "quiet"}

// summary counts the outcomes.
func summary(found *doctor.Report, order []doctor.Status) string {
	counts := map[doctor.Status]int{}
	for _, d := range found.Checks {
		counts[d.Status]++
	}
	var out []string
	for _, status := range order {
		if counts[status] > 0 {
			out = append(out, fmt.Sprintf("%d %s", counts[status], statusWords[status]))
		}
	}
	return strings.Join(out, ", ")
}

// explanations are the pages of the documentation about checks other than doctor.md.
var explanations = map[string]string{
	"configurations": "runbooks/SallyportNotRegistered.md", "service": "runbooks/SallyportFewReplicas.md", "reachability": "runbooks/SallyportAbsent.md",
	"certificate": "runbooks/SallyportCertificateProblem.md", "authority": "runbooks/SallyportAuthorityExpires.md", "replicas": "runbooks/SallyportFewReplicas.md",
	"calls": "runbooks/SallyportCallsFail.md", "latency": "runbooks/SallyportSlow.md", "guard": "runbooks/SallyportBackstopOff.md",
}

// checkRows are the outcomes of checks.
func checkRows(found *doctor.Report) [][]cell {
	var out [][]cell
	for _, d := range found.Checks {
		out = append(out, []cell{
			{{text: d.Check, href: report.DocsURI(cmp.Or(explanations[d.Check], "doctor.md"))}}, {{class: statusClasses[d.Status], text: statusWords[d.Status]}},
			{{text: d.Text}, {class: "quiet", text: d.Remedy}},
		})
	}
	return out
}

// callRows are the calls of registered webhooks.
func callRows(registered []cluster.Webhook, c *calls) [][]cell {
	var out [][]cell
	for _, w := range registered {
		link := lint.Link{Phase: lint.ValidatingWebhooks, Name: "/" + w.Name}
		if w.Kind == "MutatingWebhookConfiguration" {
			link.Phase = lint.MutatingWebhooks
		}
		out = append(out, []cell{text(w.Name), text(string(w.FailurePolicy)), c.counted(c.of(link, ""))})
	}
	return out
}
