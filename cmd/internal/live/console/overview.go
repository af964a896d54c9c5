// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"slices"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/calls"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/clusters"
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
	found, err := diagnose(ctx, v)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found.Checks, func(a, b doctor.Diagnosis) int {
		return cmp.Compare(slices.Index(clusters.Order, a.Status), slices.Index(clusters.Order, b.Status))
	})
	v.data = found
	o := &outlook{registered: registered, calls: counted, summary: clusters.Summary(found)}
	for _, d := range found.Checks {
		switch d.Status {
		case doctor.OK:
			o.passed = append(o.passed, d)
		case doctor.Skipped:
			o.skipped = append(o.skipped, d)
		default:
			o.attention = append(o.attention, d)
		}
	}
	return overview(v, o), nil
}

// diagnose runs doctor's checks.
func diagnose(ctx context.Context, v *visit) (*doctor.Report, error) {
	options := v.Doctor
	options.Window = 0 // a page does not wait for further failures
	return doctor.Run(ctx, v.config, options)
}

// An outlook is the content of the overview.
type outlook struct {
	summary                    string
	attention, passed, skipped []doctor.Diagnosis
	registered                 []cluster.Webhook
	calls                      *calls.Counted
}

// blind reports whether the user may read next to nothing of the installation: most checks could not be made.
func (o *outlook) blind() bool { return len(o.skipped) > len(o.passed)+len(o.attention) }

// A question is what people come with, and the page with the answer.
type question struct{ text, hint, href string }

// questions are the first thing on the first page.
func questions(v *visit) []question {
	return []question{
		{"Why is my pod not injected?", "Choose a pod or a workload: what was sent, what is stored, which PodDefaults did not match, and why", v.link("pod")},
		{"Who can read this Secret through pods?", "PodDefaults that bring Secrets, and the pods that have them", v.link("who", "kind", "Secret")},
		{"What would this change do, and to whom?", "Paste a workload or a PodDefault: nothing is applied", v.link("try")},
		{"Which webhook slows my cluster?", "How long API requests wait for each webhook and policy", v.link("latency")},
		{"What is wrong, and what do I do?", "Checks of the installation, worst first, with remedies", "#checks"},
		{"What did last week's change do?", "Revisions of PodDefaults, the latest first, and the pods that carry them", v.link("rollouts")},
		{"Who is exempt, and until when?", "Workloads that do not get a PodDefault for a time", v.link("exemptions")},
		{"Is it safe to upgrade?", "What to fix before nodes are drained and API servers restart", v.link("upgrade")},
	}
}

// statusClasses are the styles of outcomes.
var statusClasses = map[doctor.Status]string{doctor.OK: "ok", doctor.Fix: "fix", doctor.Unknown: "note", doctor.Note: "note", doctor.Skipped: "quiet"}

// explanations are the pages of the documentation about checks other than doctor.md.
var explanations = map[string]string{
	"configurations": "runbooks/SallyportNotRegistered.md", "service": "runbooks/SallyportFewReplicas.md", "reachability": "runbooks/SallyportAbsent.md",
	"certificate": "runbooks/SallyportCertificateProblem.md", "authority": "runbooks/SallyportAuthorityExpires.md", "replicas": "runbooks/SallyportFewReplicas.md",
	"calls": "runbooks/SallyportCallsFail.md", "latency": "runbooks/SallyportSlow.md", "guard": "runbooks/SallyportBackstopOff.md",
}

// checkColumns are the columns of checkRows.
var checkColumns = []string{"Check", "Status", "Result"}

// checkRows are the outcomes of checks.
func checkRows(list []doctor.Diagnosis) [][]cell {
	var out [][]cell
	for _, d := range list {
		out = append(out, []cell{
			{{text: d.Check, href: report.DocsURI(cmp.Or(explanations[d.Check], "doctor.md"))}}, {badge(statusClasses[d.Status], clusters.Words[d.Status])},
			{{text: d.Text}, {class: "quiet", text: d.Remedy}},
		})
	}
	return out
}

// callRows are the calls of registered webhooks.
func callRows(registered []cluster.Webhook, c *calls.Counted) [][]cell {
	var out [][]cell
	for _, w := range registered {
		link := lint.Link{Phase: lint.ValidatingWebhooks, Name: "/" + w.Name}
		if w.Kind == "MutatingWebhookConfiguration" {
			link.Phase = lint.MutatingWebhooks
		}
		out = append(out, []cell{text(w.Name), text(string(w.FailurePolicy)), counted(c, c.Of(link, ""))})
	}
	return out
}
