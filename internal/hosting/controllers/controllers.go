// SPDX-License-Identifier: Apache-2.0

// Package controllers makes the manager of an application's controllers: controller-runtime's,
// which opens no port of its own where the application serves webhooks too.
package controllers

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/hosting/cached"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Options say how a [Manager] runs.
type Options struct {
	// Name is that of the lease.
	Name   string
	Scheme *runtime.Scheme
	Logger *slog.Logger
	// Address is host:port for metrics and probes; empty if a listener shows them, see
	// [Manager.ReadyChecks] and [Manager.LiveChecks].
	Address  string
	Election registration.LeaderElectionSettings
	// Changes are made to the manager's options, in this order.
	Changes []func(*manager.Options)
	// Kinds are kept in the manager's cache. Changed is called when one is filled.
	Kinds   []cached.Kind
	Changed func()
}

// Manager is a manager of controllers that knows which checks they add to it. Make one with
// [New].
type Manager struct {
	manager.Manager
	// Filling fills the cache with [Options.Kinds]; nil if there are none. A listener waits for
	// it; without one the manager's probe does.
	Filling     *cached.Filling
	live, ready map[string]healthz.Checker
}

// New returns a manager without controllers. The first one's logger is that of all
// controllers of the process that are not given one.
func New(config *rest.Config, o Options) (*Manager, error) {
	log := logr.FromSlogHandler(hosting.Quiet{Handler: o.Logger.Handler()})
	controllerlog.SetLogger(log)
	made := &Manager{live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{}}
	metrics := metricsserver.Options{BindAddress: "0"}
	if o.Address != "" {
		metrics = metricsserver.Options{BindAddress: o.Address, ExtraHandlers: map[string]http.Handler{
			"/livez":  http.StripPrefix("/livez", &healthz.Handler{Checks: made.live}),
			"/readyz": http.StripPrefix("/readyz", &healthz.Handler{Checks: made.ready}),
		}}
	}
	election := o.Election
	var err error
	var stored cache.Options
	newCache := cache.New
	if len(o.Kinds) > 0 {
		if made.Filling, err = cached.NewFilling(o.Scheme, o.Kinds, o.Logger, o.Changed); err != nil {
			return nil, err
		}
		stored, newCache = made.Filling.Options(), made.Filling.NewCache
	}
	options := manager.Options{
		Scheme:                        o.Scheme,
		Logger:                        log,
		Cache:                         stored,
		NewCache:                      newCache,
		Metrics:                       metrics,
		HealthProbeBindAddress:        "0",
		LeaderElection:                o.Election.LeaderElect,
		LeaderElectionID:              o.Name,
		LeaderElectionNamespace:       o.Election.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &election.LeaseDuration,
		RenewDeadline:                 &election.RenewDeadline,
		RetryPeriod:                   &election.RetryPeriod,
	}
	if options, err = changed(options, o.Changes); err != nil {
		return nil, err
	}
	if made.Filling != nil {
		if err := made.Filling.Complete(&options.Cache); err != nil {
			return nil, err
		}
	}
	made.Manager, err = manager.New(config, options)
	if err != nil || made.Filling == nil {
		return made, err
	}
	made.Filling.Fill(context.Background(), made.GetCache())
	err = made.Add(made.Filling)
	if o.Address != "" {
		err = errors.Join(err, made.AddReadyzCheck("cache", func(*http.Request) error { return made.Filling.Ready() }))
	}
	return made, err
}

// GetFieldIndexer returns the manager's indexer. Handlers read by the indexes that controllers add to it.
func (m *Manager) GetFieldIndexer() client.FieldIndexer {
	if m.Filling == nil {
		return m.Manager.GetFieldIndexer()
	}
	return m.Filling.Indexer(m.Manager.GetFieldIndexer())
}

// AddHealthzCheck adds a check to /livez.
func (m *Manager) AddHealthzCheck(name string, check healthz.Checker) error {
	if err := m.Manager.AddHealthzCheck(name, check); err != nil {
		return err
	}
	m.live[name] = m.logged(name, "/livez", check)
	return nil
}

// AddReadyzCheck adds a check to /readyz.
func (m *Manager) AddReadyzCheck(name string, check healthz.Checker) error {
	if err := m.Manager.AddReadyzCheck(name, check); err != nil {
		return err
	}
	m.ready[name] = m.logged(name, "/readyz", check)
	return nil
}

// errLogged is what probes show of a check of a controller, as those of a manager do:
// what the check says may not be for everybody.
var errLogged = errors.New("failed, for a reason that is in the log")

// logged is the check, whose reasons are logged, each when it is a new one.
func (m *Manager) logged(name, path string, check healthz.Checker) healthz.Checker {
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
		return errLogged
	}
}

// ReadyChecks are the checks for /readyz that were added, in the order of their names.
func (m *Manager) ReadyChecks() []serving.Check { return served(m.ready) }

// LiveChecks are those for /livez.
func (m *Manager) LiveChecks() []serving.Check { return served(m.live) }

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
