// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// controller runs beside a built-in webhook, on one replica. It does not use a
// controller-runtime manager, which ends the process when it loses its lease or a kind is
// missing. A webhook must survive both.
type controller struct {
	name string // in the configuration
	// asked is set if a selection must name it: "*" does not select it.
	asked bool
	// start creates the controller, given the webhook that it belongs to: it runs only if that is
	// enabled. It is called for each run.
	start func(*liveBuiltin, frontdoor.Environment, frontdoor.Leader) (run func(context.Context) error, err error)
	// detail is what /readyz?verbose shows of it; nil for nothing.
	detail func(*liveBuiltin) string
	// rights are the rules that it needs.
	rights []rbacv1.PolicyRule
}

// selects reports whether a selection of controllers includes a name.
func selects(selection []string, name string) bool {
	return cli.Selects(selection, name) && (slices.Contains(selection, name) || !slices.Contains(askedControllers(), name))
}

// enabledControllers returns the selected controllers whose webhook is enabled.
func (c *Config) enabledControllers() []controller {
	var out []controller
	for _, b := range c.Enabled() {
		for _, one := range b.controllers {
			if selects(c.Controllers, one.name) {
				out = append(out, one)
			}
		}
	}
	return out
}

// Controls reports whether a controller is enabled.
func (c *Config) Controls() bool { return len(c.enabledControllers()) > 0 }

func controllerNames() []string {
	return namesOf(func(controller) bool { return true })
}

// askedControllers are the names of controllers that "*" does not select.
func askedControllers() []string {
	return namesOf(func(c controller) bool { return c.asked })
}

func namesOf(controllers func(controller) bool) []string {
	var names []string
	for _, b := range Builtins() {
		for _, c := range b.controllers {
			if controllers(c) {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// component runs the controller once its webhook is first enabled.
func (c controller) component(b *liveBuiltin, env frontdoor.Environment) (frontdoor.Component, error) {
	out, l := frontdoor.Component{Name: c.name}, b.config
	if l.noCluster || !selects(l.start.Controllers, c.name) || l.file == "" && !l.start.Has(b.Name) {
		return out, nil
	}
	run, err := c.start(b, env, env.Leader())
	if err != nil {
		return out, fmt.Errorf("controller %s: %w", c.name, err)
	}
	if c.detail != nil {
		out.Ready = func() error { return nil } // webhooks do not wait for it
		out.Detail = func() string { return c.detail(b) }
	}
	out.Run = func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-b.started:
			return run(ctx)
		}
	}
	return out, nil
}
