// SPDX-License-Identifier: Apache-2.0

package serverdoctor

import (
	"context"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/proof"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// checkInjection proves for a sample of PodDefaults that the API server has them applied. It
// reports nothing if there is no injection.
func checkInjection(ctx context.Context, of *doctor.Installation, report *doctor.Report) {
	const check = "injection"
	if of.WebhooksErr != nil {
		report.Unknown(check, "run doctor as a user who may list webhook configurations", "it is unknown whether PodDefaults are applied: %v", of.WebhooksErr)
		return
	}
	if !slices.ContainsFunc(of.Webhooks, func(w cluster.Webhook) bool { return w.Name == poddefault.Name }) {
		return
	}
	config := serve.Default()
	if err := config.Select("poddefault"); err != nil {
		report.Unknown(check, "report this as a bug", "%v", err)
		return
	}
	prover := proof.Prover{Policy: of.Registration.Name, Simulator: func() *injection.Simulator {
		return &injection.Simulator{Cluster: of.Cluster, Notes: io.Discard, Webhooks: func(source match.Source) ([]admission.Webhook, error) {
			return config.Define(serve.From(serve.PodDefaultSources{PodDefaults: source, Authors: serve.Anybody{}}))
		}}
	}}
	results, total, err := prover.Run(ctx)
	if err != nil {
		remedy := "see whether the API server is well, and try again"
		if apierrors.IsForbidden(err) {
			remedy = "run doctor as a user who may list PodDefaults, ClusterPodDefaults and namespaces, and create pods"
		}
		report.Unknown(check, remedy, "it is unknown whether PodDefaults are applied: %v", err)
		return
	}
	if total == 0 {
		report.Skip(check, "there are no PodDefaults to try")
		return
	}
	reportResults(report, check, results, total)
}

// reportResults prints one line for each problem, and ok only if every result is known.
func reportResults(report *doctor.Report, check string, results []proof.Result, total int) {
	const limit = 5
	counts := map[proof.Answer]int{}
	firsts := map[proof.Answer]string{}
	for _, r := range results {
		counts[r.Answer]++
		if firsts[r.Answer] == "" {
			firsts[r.Answer] = r.Object + ": " + r.Reason
		}
		if r.Answer == proof.Differs && counts[r.Answer] <= limit {
			report.Fix(check, "see foreign-terms, guard and definitions above, the log of the server, and 'sallyport chain pods -n "+r.Namespace+"'",
				"%s is not applied as foreseen in the namespace %s: %s", r.Object, r.Namespace, r.Reason)
		}
	}
	if more := counts[proof.Differs] - limit; more > 0 {
		report.Fix(check, "see above", "%s more", cli.Count(more, "object is", "objects are"))
	}
	of := cli.Count(total, "PodDefault", "PodDefaults")
	if counts[proof.Outside] > 0 {
		report.Note(check, "%d of %s are not meant to be applied: %s", counts[proof.Outside], of, firsts[proof.Outside])
	}
	if counts[proof.Idle] > 0 {
		report.Note(check, "%d of %s apply to no pod: %s", counts[proof.Idle], of, firsts[proof.Idle])
	}
	switch {
	case counts[proof.Unknown] > 0:
		report.Unknown(check, "resolve the reason, or create a pod that it selects and look at it: sallyport explain pod/NAME",
			"of %d of %s it is unknown whether they are applied: %s", counts[proof.Unknown], of, firsts[proof.Unknown])
	case counts[proof.Differs] > 0:
	case counts[proof.Proven] == 0:
		report.Skip(check, "none of %s applies to a pod for which this server is meant", of)
	default:
		report.OK(check, "%d of %s were tried with a pod, in a dry run, and are applied as foreseen", counts[proof.Proven], of)
	}
}
