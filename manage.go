// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sallyport-io/sallyport/serving"
)

// manage sets up the controllers in a manager. Where webhooks are served too, the
// manager opens no port of its own.
func (a *App) manage(s *Settings, c *chosen, client *rest.Config) (*checkedManager, error) {
	log := logr.FromSlogHandler(quietEnd{s.Logger.Handler()})
	controllerlog.SetLogger(log) // what is not given one; the first call counts
	live, ready := &healthz.Handler{Checks: map[string]healthz.Checker{}}, &healthz.Handler{Checks: map[string]healthz.Checker{}}
	metrics := metricsserver.Options{BindAddress: "0"}
	if address := s.Serving.MetricsBindAddress; !c.serves() && address != "" {
		metrics = metricsserver.Options{BindAddress: address, ExtraHandlers: map[string]http.Handler{
			"/livez": http.StripPrefix("/livez", live), "/readyz": http.StripPrefix("/readyz", ready),
		}}
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
	checked := &checkedManager{Manager: m, live: live.Checks, ready: ready.Checks}
	for _, controller := range c.controllers {
		if err := controller.setup(checked); err != nil {
			return nil, fmt.Errorf("controller %s: %w", controller.name, err)
		}
	}
	return checked, nil
}

// checkedManager is a manager that tells which checks controllers add to it: a manager
// answers them on a port of its own only, and has none here.
type checkedManager struct {
	manager.Manager
	live, ready map[string]healthz.Checker
}

// AddHealthzCheck adds a check to /livez.
func (m *checkedManager) AddHealthzCheck(name string, check healthz.Checker) error {
	if err := m.Manager.AddHealthzCheck(name, check); err != nil {
		return err
	}
	m.live[name] = m.withheld(name, "/livez", check)
	return nil
}

// AddReadyzCheck adds a check to /readyz.
func (m *checkedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	if err := m.Manager.AddReadyzCheck(name, check); err != nil {
		return err
	}
	m.ready[name] = m.withheld(name, "/readyz", check)
	return nil
}

// errWithheld is what probes show of a check of a controller, as those of a manager do:
// what the check says may not be for everybody.
var errWithheld = errors.New("failed, for a reason that is in the log")

// withheld is the check, whose reasons are logged, each when it is a new one.
func (m *checkedManager) withheld(name, path string, check healthz.Checker) healthz.Checker {
	var last atomic.Pointer[string]
	return func(r *http.Request) error {
		err := check(r)
		if err == nil {
			last.Store(nil)
			return nil
		}
		reason := err.Error()
		if before := last.Swap(&reason); before == nil || *before != reason {
			m.GetLogger().Info("a check of a controller fails", "check", name, "path", path, "error", reason)
		}
		return errWithheld
	}
}

// served are the checks for a listener, in the order of their names.
func served(checks map[string]healthz.Checker) []serving.Check {
	var all []serving.Check
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		all = append(all, serving.Check{Name: "controllers/" + name, Ready: func() error {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
			if err != nil {
				return err
			}
			return checks[name](r)
		}})
	}
	return all
}

// quietEnd is a handler of logs that leaves out what a manager says of each end that it was
// told of: that it lost the lease, which it gave up itself, is no error.
type quietEnd struct{ slog.Handler }

func (h quietEnd) Handle(ctx context.Context, record slog.Record) error {
	expected := false
	if record.Message == "error received after stop sequence was engaged" {
		record.Attrs(func(attr slog.Attr) bool {
			expected = expected || attr.Value.String() == "leader election lost"
			return !expected
		})
	}
	if expected {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

func (h quietEnd) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietEnd{h.Handler.WithAttrs(attrs)}
}
func (h quietEnd) WithGroup(name string) slog.Handler { return quietEnd{h.Handler.WithGroup(name)} }
