// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/cached"
	"github.com/sallyport-io/sallyport/internal/hosting/controllers"
	"github.com/sallyport-io/sallyport/serving"
)

// newManager implements manage of [App].
func (a *App) newManager(s *Settings, c *chosen, client *rest.Config, changed func()) (*controllers.Manager, error) {
	options := controllers.Options{
		Name: a.name, Scheme: a.Scheme(), Logger: s.Logger, Election: s.LeaderElection, Kinds: a.kinds, Changed: changed, Changes: a.managerOptions,
	}
	options.Election.LeaderElect = options.Election.LeaderElect && len(c.controllers) > 0
	if !c.serves() { // otherwise the webhook listener serves metrics and probes
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

// managedPart returns the run's manager as a part of its host, or nil if there is none.
// It sets the environment's cache.
func (a *App) managedPart(s *Settings, c *chosen, client *rest.Config, env *Environment) (*controllers.Manager, *hosting.Part, error) {
	env.Cache = Cache(context.Background()) // returns an error: nothing is cached
	if !c.managed() {
		return nil, nil, nil
	}
	m, err := a.manage(s, c, client, env.Changed)
	if err != nil {
		return nil, nil, err
	}
	// Objects that the manager reads may need conversion by this process.
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

// reading returns routes whose handlers find the cache. Converters get none, because
// the cache may wait for them.
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
