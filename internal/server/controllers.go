// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault/backstop"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault/status"
)

// controller is something that goes on beside a ready-made webhook. One replica runs
// it. It is no controller of a controller-runtime manager: that one ends the process
// when it loses its lease, or finds a kind missing, and a webhook must outlive both.
type controller struct {
	name    string // in the configuration
	builtin string // the webhook that it belongs to; it runs only where that one does
	// start makes it. It is called for each run.
	start func(*liveConfig, frontdoor.Environment, frontdoor.Leader) (run func(context.Context) error, err error)
	// rights are those that it needs.
	rights []rbacv1.PolicyRule
}

// enabledControllers are those that are selected, and so is their webhook.
func (c *Config) enabledControllers() []controller {
	var out []controller
	for _, one := range controllers() {
		if cli.Selects(c.Controllers, one.name) && c.Has(one.builtin) {
			out = append(out, one)
		}
	}
	return out
}

// Controls tells whether a controller runs beside the webhooks.
func (c *Config) Controls() bool { return len(c.enabledControllers()) > 0 }

func controllerNames() []string {
	var names []string
	for _, c := range controllers() {
		names = append(names, c.name)
	}
	return names
}

// component runs the controller from when its webhook is enabled for the first time.
func (c controller) component(l *liveConfig, env frontdoor.Environment) (frontdoor.Component, error) {
	out := frontdoor.Component{Name: c.name}
	if !cli.Selects(l.start.Controllers, c.name) || l.file == "" && !l.start.Has(c.builtin) {
		return out, nil
	}
	wanted := l.builtin(c.builtin).started
	run, err := c.start(l, env, env.Leader())
	if err != nil {
		return out, fmt.Errorf("controller %s: %w", c.name, err)
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

// controllers are all there are, by name.
func controllers() []controller {
	return []controller{{
		name: status.Name, builtin: "poddefault",
		start: func(l *liveConfig, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			c, err := status.New(env.Client, status.Options{Watcher: l.podDefaults(), Leader: leader, Logger: env.Logger, Metrics: env.Metrics})
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
	}}
}

// podDefaults is what the webhook of that name reads from; nil if nobody made it.
func (l *liveConfig) podDefaults() *poddefault.Watcher {
	watcher, _ := l.builtin("poddefault").from.PodDefaults.(*poddefault.Watcher)
	return watcher
}
