// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/controllers"
)

// newManager is what manage of an [App] is.
func (a *App) newManager(s *Settings, c *chosen, client *rest.Config) (*controllers.Manager, error) {
	options := controllers.Options{Name: a.name, Scheme: a.scheme, Logger: s.Logger, Election: s.LeaderElection, Changes: a.managerOptions}
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
