// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cached"
	"github.com/sallyport-io/sallyport/internal/controllers"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/serving"
)

// newManager is what manage of an [App] is.
func (a *App) newManager(s *Settings, c *chosen, client *rest.Config, changed func()) (*controllers.Manager, error) {
	options := controllers.Options{
		Name: a.name, Scheme: a.Scheme(), Logger: s.Logger, Election: s.LeaderElection, Kinds: a.kinds, Changed: changed, Changes: a.managerOptions,
	}
	options.Election.Enabled = options.Election.Enabled && len(c.controllers) > 0
	if !c.serves() { // else the listener of the webhooks shows metrics and probes
		options.Address = s.Serving.MetricsBindAddress
	}
	m, err := controllers.New(client, options)
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	for _, controller := range c.controllers {
		if err := controller.setup(m); err != nil {
			return nil, fmt.Errorf("controller %s: %w", controller.name, err)
		}
	}
	return m, nil
}

// managedPart is the manager of a run as a part of its host; nil if the run has none. It tells the
// environment of its cache.
func (a *App) managedPart(s *Settings, c *chosen, client *rest.Config, env *Environment) (*controllers.Manager, *hosting.Part, error) {
	env.Cache = Cache(context.Background()) // which says that nothing is cached
	if !c.managed() {
		return nil, nil, nil
	}
	m, err := a.manage(s, c, client, env.Changed)
	if err != nil {
		return nil, nil, err
	}
	// What the manager reads may have to be converted here.
	part := &hosting.Part{Name: "controllers", Certified: len(c.converters) > 0}
	if m.Filling != nil {
		part.Name, part.Ready = "cache", m.Filling.Ready
		if env.Cache, err = m.Filling.Reader(); err != nil {
			return nil, nil, err
		}
	}
	part.Run = func(ctx context.Context) error {
		if err := m.Start(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.Name, err)
		}
		return nil
	}
	return m, part, nil
}

// reading are routes whose handlers find the cache. Those of converters do not: the cache may
// wait for them.
func reading(routes []serving.Route, env *Environment) []serving.Route {
	for i, route := range routes {
		if route.Ungated || route.Answer == nil {
			continue
		}
		routes[i].Answer = func(ctx context.Context, w http.ResponseWriter, call serving.Call) {
			route.Answer(cached.NewContext(ctx, env.Cache), w, call)
		}
	}
	return routes
}
