// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/definition"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exemptions"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/status"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// controller runs beside a built-in webhook, on one replica. It does not use a
// controller-runtime manager, which ends the process when it loses its lease or a kind is
// missing. A webhook must survive both.
type controller struct {
	name    string // in the configuration
	builtin string // the webhook that it belongs to; it runs only if that webhook is enabled
	// start creates the controller. It is called for each run.
	start func(*liveConfig, frontdoor.Environment, frontdoor.Leader) (run func(context.Context) error, err error)
	// detail is what /readyz?verbose shows of it; nil for nothing.
	detail func(*liveConfig) string
	// rights are the rules that it needs.
	rights []rbacv1.PolicyRule
}

// offByDefault are the controllers that "*" does not select.
var offByDefault = []string{reports.Name}

// selects reports whether a selection of controllers includes a name.
func selects(selection []string, name string) bool {
	return cli.Selects(selection, name) && (slices.Contains(selection, name) || !slices.Contains(offByDefault, name))
}

// enabledControllers returns the selected controllers whose webhook is enabled.
func (c *Config) enabledControllers() []controller {
	var out []controller
	for _, one := range controllers() {
		if selects(c.Controllers, one.name) && c.Has(one.builtin) {
			out = append(out, one)
		}
	}
	return out
}

// Controls reports whether a controller is enabled.
func (c *Config) Controls() bool { return len(c.enabledControllers()) > 0 }

func controllerNames() []string {
	var names []string
	for _, c := range controllers() {
		names = append(names, c.name)
	}
	return names
}

// component runs the controller once its webhook is first enabled.
func (c controller) component(l *liveConfig, env frontdoor.Environment) (frontdoor.Component, error) {
	out := frontdoor.Component{Name: c.name}
	if l.noCluster || !selects(l.start.Controllers, c.name) || l.file == "" && !l.start.Has(c.builtin) {
		return out, nil
	}
	wanted := l.builtin(c.builtin).started
	run, err := c.start(l, env, env.Leader())
	if err != nil {
		return out, fmt.Errorf("controller %s: %w", c.name, err)
	}
	if c.detail != nil {
		out.Ready = func() error { return nil } // webhooks do not wait for it
		out.Detail = func() string { return c.detail(l) }
	}
	out.Run = func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-wanted:
			return run(ctx)
		}
	}
	return out, nil
}

// controllers returns all controllers by name.
func controllers() []controller {
	return []controller{{
		name: status.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			c, err := status.New(env.Client, status.Options{
				Watcher: l.podDefaults(), Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Pods: l.podCounter(), Room: &l.indexes,
			})
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
		rights: status.PolicyRules(),
	}, {
		name: backstop.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			return l.startIndexes(env, leader)
		},
		rights: backstop.PolicyRules(),
	}, {
		name: drift.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			c, err := drift.NewController(env.Client, drift.Options{
				Watcher: l.podDefaults(), Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Board: &l.drift,
				Asked: l.driftAsked(),
			})
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
		rights: drift.PolicyRules(),
	}, {
		name: exemptions.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			options := exemptions.Options{Watcher: l.podDefaults(), Leader: leader, Logger: env.Logger, Counts: l.start.Settings.PodDefault.Exempts()}
			if selects(l.start.Controllers, drift.Name) {
				options.Pods = &l.drift
			}
			c, err := exemptions.New(env.Client, options)
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
		rights: exemptions.PolicyRules(),
	}, {
		name: definition.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			own, err := crd.All()
			if err != nil {
				return nil, err
			}
			client, err := crdclient.NewForConfig(env.Client)
			if err != nil {
				return nil, err
			}
			c, err := definition.New(env.Client, definition.Options{
				Client: client, Own: own, Leader: leader, Logger: env.Logger, Metrics: env.Metrics, Status: &l.definitions,
			})
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
		detail: func(l *liveConfig) string { return l.definitions.Detail() },
		rights: definition.PolicyRules(),
	}, {
		name: reports.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			c, err := reports.New(env.Client, reports.Options{
				Watcher: l.podDefaults(), Recorder: l.findings(), Leader: leader, Logger: env.Logger, Metrics: env.Metrics,
			})
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
		rights: reports.PolicyRules(),
	}}
}

// findings returns what records findings for reports; nil if their controller is off.
func (l *liveConfig) findings() *reports.Recorder {
	if !selects(l.start.Controllers, reports.Name) {
		return nil
	}
	return &l.reports
}

// podCounter returns what counts the pods of PodDefaults; nil if its controller is off.
func (l *liveConfig) podCounter() status.PodCounter {
	if !selects(l.start.Controllers, drift.Name) {
		return nil
	}
	return &l.drift
}

// podDefaults returns the source of the webhook poddefault; nil if there is none.
func (l *liveConfig) podDefaults() *source.Watcher {
	watcher, _ := l.builtin("poddefault").from.PodDefaults.(*source.Watcher)
	return watcher
}
