// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/definition"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exemptions"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/status"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// podDefaultControllers returns the controllers of PodDefaults.
func podDefaultControllers() []controller {
	return []controller{{
		name: status.Name,
		start: func(b *liveBuiltin, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			return started(status.New(env.Client, status.Options{
				Watcher: podDefaultsOf(b), Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Pods: podCounter(b), Room: &runningOf(b).indexes,
			}))
		},
		rights: status.PolicyRules(),
	}, {
		name:   backstop.Name,
		start:  startIndexes,
		rights: backstop.PolicyRules(),
	}, {
		name: drift.Name,
		start: func(b *liveBuiltin, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			return started(drift.NewController(env.Client, drift.Options{
				Watcher: podDefaultsOf(b), Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Board: &runningOf(b).drift,
				Asked: driftAsked(b),
			}))
		},
		rights: drift.PolicyRules(),
	}, {
		name: exemptions.Name,
		start: func(b *liveBuiltin, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			options := exemptions.Options{Watcher: podDefaultsOf(b), Leader: leader, Logger: env.Logger, Counts: PodDefault(b.config.start).Exempts()}
			if selects(b.config.start.Controllers, drift.Name) {
				options.Pods = &runningOf(b).drift
			}
			return started(exemptions.New(env.Client, options))
		},
		rights: exemptions.PolicyRules(),
	}, {
		name: definition.Name,
		start: func(b *liveBuiltin, env frontdoor.Environment, _ frontdoor.Leader) (func(context.Context) error, error) {
			own, err := crd.All()
			if err != nil {
				return nil, err
			}
			client, err := crdclient.NewForConfig(env.Client)
			if err != nil {
				return nil, err
			}
			return started(definition.New(definition.Options{
				Client: client, Own: own, Logger: env.Logger, Metrics: env.Metrics, Status: &runningOf(b).definitions,
			}))
		},
		detail: func(b *liveBuiltin) string { return runningOf(b).definitions.Detail() },
		rights: definition.PolicyRules(),
	}, {
		name: reports.Name, asked: true,
		start: func(b *liveBuiltin, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			return started(reports.New(env.Client, reports.Options{
				Watcher: podDefaultsOf(b), Recorder: runningOf(b).findings(b.config.start), Leader: leader, Logger: env.Logger, Metrics: env.Metrics,
			}))
		},
		rights: reports.PolicyRules(),
	}}
}

// started returns the method of a controller that has been made.
func started[C interface{ Run(context.Context) error }](c C, err error) (func(context.Context) error, error) {
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

// podDefaultRunning is what the webhook and the controllers of PodDefaults share.
type podDefaultRunning struct {
	indexes indexes
	drift   drift.Board
	reports reports.Recorder
	// definitions says what the served definitions lack.
	definitions definition.Status
}

func runningOf(b *liveBuiltin) *podDefaultRunning { return b.running.(*podDefaultRunning) }

// findings returns what records findings for reports; nil if their controller is off.
func (r *podDefaultRunning) findings(start *Config) *reports.Recorder {
	if !selects(start.Controllers, reports.Name) {
		return nil
	}
	return &r.reports
}

// podCounter returns what counts the pods of PodDefaults; nil if its controller is off.
func podCounter(b *liveBuiltin) status.PodCounter {
	if !selects(b.config.start.Controllers, drift.Name) {
		return nil
	}
	return &runningOf(b).drift
}

// podDefaultsOf returns the watcher that the webhook poddefault reads from, or nil if it reads from no cluster.
func podDefaultsOf(b *liveBuiltin) *source.Watcher {
	watcher, _ := sourcesOf[PodDefaultSources](b.from).PodDefaults.(*source.Watcher)
	return watcher
}
