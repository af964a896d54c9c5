// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"strconv"

	"github.com/a-h/templ"
	"golang.org/x/sync/errgroup"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/clusters"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollouts"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// An assessment is a check before an upgrade of the cluster or of the server.
type assessment struct {
	Check  string        `json:"check"`
	Status doctor.Status `json:"status"`
	Text   string        `json:"text"`
	Remedy string        `json:"remedy,omitempty"`
}

// showUpgrade says whether it is safe to upgrade: the installation answers, webhooks can be restarted without
// failed calls, no rollout is half done, no pod was missed. What could not be checked is not safe.
func showUpgrade(ctx context.Context, v *visit) (templ.Component, error) {
	list, err := assess(ctx, v, assessInstallation, assessWebhooks, assessRollouts)
	if err != nil {
		return nil, err
	}
	pods, err := assess(ctx, v, assessPods) // not beside the others: it holds what it compares in memory
	if err != nil {
		return nil, err
	}
	list = append(list, pods...)
	slices.SortStableFunc(list, func(a, b assessment) int {
		return slices.Index(clusters.Order, a.Status) - slices.Index(clusters.Order, b.Status)
	})
	v.data = list
	count := map[doctor.Status]int{}
	var rows [][]cell
	for _, a := range list {
		count[a.Status]++
		rows = append(rows, []cell{text(a.Check), {badge(statusClasses[a.Status], clusters.Words[a.Status])}, {{text: a.Text}, {class: "quiet", text: a.Remedy}}})
	}
	verdict := piece{class: "ok", text: "Yes: every check passed."}
	switch {
	case count[doctor.Fix] > 0:
		verdict = piece{class: "fix", text: "No: fix " + strconv.Itoa(count[doctor.Fix]) + " of these checks first."}
	case count[doctor.Unknown]+count[doctor.Skipped] > 0:
		verdict = piece{class: "note", text: "Not known: " + strconv.Itoa(count[doctor.Unknown]+count[doctor.Skipped]) + " of these checks could not be made."}
	case count[doctor.Note] > 0:
		verdict = piece{class: "note", text: "Yes, with a look at " + strconv.Itoa(count[doctor.Note]) + " of these checks."}
	}
	return verdictPage(v, verdict, []block{{heading: "Checks", columns: []string{"Check", "Status", "Result"}, rows: rows}}), nil
}

// assess runs assessments at the same time, each with a visit of its own, and returns what they found in order.
func assess(ctx context.Context, v *visit, of ...func(context.Context, *visit) ([]assessment, error)) (list []assessment, err error) {
	found, visits := make([][]assessment, len(of)), make([]visit, len(of))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(maxReading)
	for i, one := range of {
		visits[i] = visit{Request: v.Request, Options: v.Options, page: v.page, user: v.user, config: v.config, cluster: v.cluster}
		group.Go(func() (err error) {
			found[i], err = one(reading, &visits[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range of {
		list = append(list, found[i]...)
		v.notes.Write(visits[i].notes.Bytes())
		for _, what := range visits[i].hidden {
			if !slices.Contains(v.hidden, what) {
				v.hidden = append(v.hidden, what)
			}
		}
	}
	return list, nil
}

// assessInstallation has the checks of doctor.
func assessInstallation(ctx context.Context, v *visit) (list []assessment, err error) {
	found, err := diagnose(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, d := range found.Checks {
		if d.Check != "static-manifests" { // it needs files
			list = append(list, assessment{d.Check, d.Status, d.Text, d.Remedy})
		}
	}
	return list, nil
}

// assessWebhooks looks at findings about all webhooks and policies: those that fail closed stop an upgrade.
func assessWebhooks(ctx context.Context, v *visit) ([]assessment, error) {
	a := assessment{Check: "webhooks of the cluster", Status: doctor.OK, Text: "no webhook or policy has an error"}
	listing, err := inspect.List(ctx, v.cluster)
	if err != nil {
		return nil, err
	}
	errs := 0
	count := func(findings []lint.Finding) {
		for _, f := range findings {
			if f.Severity == lint.Error {
				errs++
			}
		}
	}
	count(listing.Findings)
	for i := range listing.Links {
		count(listing.Links[i].Findings)
	}
	switch {
	case errs > 0:
		a.Status, a.Text, a.Remedy = doctor.Fix, strconv.Itoa(errs)+" errors in webhook configurations and policies", "The page Webhooks and policies has each with its remedy."
	case len(listing.Skipped) > 0:
		a.Status, a.Text, a.Remedy = doctor.Unknown, "no error was found, and "+cli.Count(len(listing.Skipped), "check", "checks")+" could not be made", "The page Webhooks and policies says which, and why."
	}
	return []assessment{a}, nil
}

// assessRollouts looks for rollouts in progress.
func assessRollouts(ctx context.Context, v *visit) ([]assessment, error) {
	a := assessment{Check: "rollouts of PodDefaults", Status: doctor.OK, Text: "none is in progress"}
	changes, err := rollouts.Recent(ctx, v.cluster, "")
	hidden := err != nil
	if err = v.hide("list revisions of all namespaces", err); err != nil {
		return nil, err
	}
	if n := len(slices.DeleteFunc(changes, func(c rollouts.Change) bool { return !c.RollsOut })); n > 0 {
		a.Status, a.Text, a.Remedy = doctor.Note, strconv.Itoa(n)+" in progress", "Pods that are replaced during the upgrade may get the new revision: complete or abort them first. See the page Rollouts."
	} else if hidden {
		a.Status, a.Text = doctor.Unknown, "not known"
	}
	return []assessment{a}, nil
}

// assessPods looks for pods that were missed, and for exemptions that end while nodes are drained.
func assessPods(ctx context.Context, v *visit) ([]assessment, error) {
	a := assessment{Check: "running pods", Status: doctor.OK, Text: "no pod was missed by the webhook, and no exemption ends within 7 days"}
	found, err := v.findDrift(ctx)
	if err != nil {
		return nil, err
	}
	if found == nil || v.chosen() == "" && len(v.hidden) > 0 {
		a.Status, a.Text = doctor.Unknown, "not all could be compared"
		return []assessment{a}, nil
	}
	missed, ending := 0, 0
	for i := range found.Workloads {
		missed += len(found.Workloads[i].Missed)
	}
	for _, e := range found.Exemptions {
		if endsSoon(e.Until) {
			ending++
		}
	}
	switch {
	case missed > 0:
		a.Status, a.Text, a.Remedy = doctor.Fix, strconv.Itoa(missed)+" pods were created without the webhook", "Find out why before more are: see the page Drift."
	case ending > 0:
		a.Status, a.Text, a.Remedy = doctor.Note, strconv.Itoa(ending)+" exemptions end within 7 days", "Pods that are replaced after that get the PodDefaults: see the page Exemptions."
	}
	return []assessment{a}, nil
}
