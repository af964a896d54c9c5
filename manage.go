// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// manage sets up the controllers in a manager. Where webhooks are served too, the
// manager opens no port of its own.
func (a *App) manage(s *Settings, c *chosen, client *rest.Config) (manager.Manager, error) {
	log := logr.FromSlogHandler(s.Logger.Handler())
	controllerlog.SetLogger(log) // what is not given one; the first call counts
	metrics := metricsserver.Options{BindAddress: "0"}
	if address := s.Serving.MetricsBindAddress; !c.serves() && address != "" {
		alive := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
		metrics = metricsserver.Options{BindAddress: address, ExtraHandlers: map[string]http.Handler{"/livez": alive, "/readyz": alive}}
	}
	election := s.LeaderElection.Times()
	m, err := manager.New(client, manager.Options{
		Scheme:                        a.scheme,
		Logger:                        log,
		Metrics:                       metrics,
		HealthProbeBindAddress:        "0",
		LeaderElection:                s.LeaderElection.Enabled,
		LeaderElectionID:              a.name,
		LeaderElectionNamespace:       s.LeaderElection.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &election.LeaseDuration,
		RenewDeadline:                 &election.RenewDeadline,
		RetryPeriod:                   &election.RetryPeriod,
	})
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
