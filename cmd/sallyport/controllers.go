// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/backstop"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/status"
)

// controller is something that goes on beside a ready-made webhook. One replica runs
// it. It is no controller of a controller-runtime manager: that one ends the process
// when it loses its lease, or finds a kind missing, and a webhook must outlive both.
type controller struct {
	name    string // in --controllers
	builtin string // the webhook that it belongs to; it runs only where that one does
	// start makes it. It is called for each run.
	start func(*serveOptions, frontdoor.Environment, frontdoor.Leader) (run func(context.Context) error, err error)
	// rights are those that it needs.
	rights []rbacv1.PolicyRule
}

// controllerSelection says which controllers run.
type controllerSelection []string

func (s *controllerSelection) addFlag(cmd *cobra.Command) {
	*s = []string{"*"}
	cmd.Flags().StringSliceVar((*[]string)(s), "controllers", *s,
		"`names` of the controllers that run beside their webhooks: foo runs foo, -foo does not, * runs all that are not named; empty for none")
	cli.CompleteChoices(cmd, "controllers", controllerNames())
}

func (s controllerSelection) validate() error {
	return cli.ValidateSelection("controllers", s, controllerNames())
}

// enabled are those that are selected, and so is their webhook.
func (s controllerSelection) enabled(webhooks builtinSelection) []controller {
	var out []controller
	for _, c := range controllers() {
		if s.has(c.name) && webhooks.has(c.builtin) {
			out = append(out, c)
		}
	}
	return out
}

func (s controllerSelection) has(name string) bool { return cli.Selects(s, name) }

// rights are those of the controllers that run.
func (s controllerSelection) rights(webhooks builtinSelection) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, c := range s.enabled(webhooks) {
		rules = append(rules, c.rights...)
	}
	return rules
}

func controllerNames() []string {
	var names []string
	for _, c := range controllers() {
		names = append(names, c.name)
	}
	return names
}

// component runs the controller from when its webhook is enabled for the first time.
func (c controller) component(o *serveOptions, env frontdoor.Environment) (frontdoor.Component, error) {
	out := frontdoor.Component{Name: c.name}
	if !o.controllers.has(c.name) || o.config == "" && !o.webhooks.has(c.builtin) {
		return out, nil
	}
	var wanted <-chan struct{}
	for _, b := range o.live.builtins {
		if b.name == c.builtin {
			wanted = b.started
		}
	}
	run, err := c.start(o, env, env.Leader())
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
		start: func(_ *serveOptions, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			c, err := status.New(env.Client, status.Options{Leader: leader, Logger: env.Logger, Metrics: env.Metrics})
			if err != nil {
				return nil, err
			}
			return c.Run, nil
		},
		rights: status.PolicyRules(),
	}, {
		name: backstop.Name, builtin: "poddefault",
		start: func(o *serveOptions, env frontdoor.Environment, leader frontdoor.Leader) (func(context.Context) error, error) {
			return o.live.startIndexes(env, leader)
		},
		rights: backstop.PolicyRules(),
	}}
}
