// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Run runs the application until ctx ends and all calls are answered. It answers reviews as
// soon as its certificate and its components are ready; only then are the webhooks
// registered. Components and the controllers' cache, which handlers may use, end after the
// last call. If one of them fails, Run ends and returns its error. Invalid settings are an
// error that lists every problem.
func (a *App) Run(ctx context.Context, s Settings) error {
	s.Logger = cmp.Or(s.Logger, slog.Default())
	c, err := a.choose(&s)
	if err != nil {
		return err
	}
	client, err := a.validate(&s, c)
	if err != nil {
		return err
	}
	if !c.serves() {
		m, err := a.manage(&s, c, client, func() {})
		if err != nil {
			return err
		}
		return m.Start(ctx)
	}
	var owner *metav1.OwnerReference
	find := func(ctx context.Context) (err error) {
		owner, err = hosting.FindOwner(ctx, &s.Registration, client)
		return err
	}
	if err := hosting.WaitFor(ctx, s.Logger, "the API server", hosting.IsAway, find); err != nil {
		return err
	}
	host, err := a.host(&s, c, client, owner)
	if err != nil {
		return err
	}
	if err := host.Listen(ctx); err != nil {
		return err
	}
	log := s.Logger.With("version", a.version)
	if address := host.Server().MetricsAddr(); address != nil {
		log = log.With("metrics", address.String())
	}
	log.Info("starting")
	hosting.Tell(&s.Authentication, s.Logger, hosting.SharesAuthority(&s.Certificate, &s.Registration))
	return host.Run(ctx)
}

// metricsRegistry registers metrics and also gathers those of controller-runtime.
type metricsRegistry struct {
	prometheus.Registerer
	prometheus.Gatherer
}

func newMetricsRegistry(controls bool) serving.Registry {
	own := prometheus.NewRegistry()
	if controls { // its metrics include those of the process
		return metricsRegistry{own, prometheus.Gatherers{own, controllermetrics.Registry}}
	}
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return own
}

// host creates the host for validated settings. It starts nothing.
func (a *App) host(s *Settings, c *chosen, client *rest.Config, owner *metav1.OwnerReference) (*hosting.Host, error) {
	clients := &hosting.Clients{} // none, if none is needed
	var err error
	if client != nil {
		if clients, err = hosting.NewClients(client); err != nil {
			return nil, err
		}
	}
	config := hosting.Config(&s.Registration)
	config.Owner = owner
	var elected hosting.Election
	changed := hosting.NewSignal()
	env := Environment{Client: client, Logger: s.Logger, Metrics: newMetricsRegistry(c.managed()), Changed: changed.Send, Leader: func() Leader { elected.Ask(); return &elected }}
	manager, managed, err := a.managedPart(s, c, client, &env)
	if err != nil {
		return nil, err
	}
	components := make([]Component, len(c.components))
	webhooks := slices.Clone(c.webhooks)
	for i, component := range c.components {
		if components[i], err = component.build(env); err != nil {
			return nil, err
		}
		if component.declares && len(components[i].Webhooks) > 0 {
			return nil, fmt.Errorf("component %s has webhooks that it does not declare: give them to WithComponent, by WithWebhooks", components[i].Name)
		}
		webhooks = append(webhooks, components[i].Webhooks...)
	}
	if err := errors.Join(collisions(webhooks)...); err != nil {
		return nil, err
	}
	if webhooks, err = hosting.Apply(&s.Registration, webhooks); err != nil {
		return nil, err
	}
	namespace, name, inSecret := hosting.AuthoritySecret(&s.Certificate, config.Endpoint)
	var leader *hosting.Leader
	if inSecret && s.LeaderElection.LeaderElect {
		if leader, err = hosting.NewLeader(clients.Leases, namespace, name, s.LeaderElection, s.Logger); err != nil {
			return nil, err
		}
	}
	if err := elected.Stand(leader, s.LeaderElection, config, a.name, clients.Leases, s.Logger); err != nil {
		return nil, err
	}

	options := hosting.Options{
		Logger: s.Logger, Serving: s.Serving, Changed: changed, Leader: elected.Leader, Parts: parts(components),
		Certificate: func(authority certificate.AuthorityOptions) (certificate.Source, error) {
			authority.Leading = leader.Leading
			return hosting.OpenCertificate(&s.Certificate, clients.Secrets, config.Endpoint, config.ConversionEndpoint, authority)
		},
		PrivatePaths: &hosting.PrivatePaths{Mode: s.Authentication.PrivatePaths, Shared: hosting.SharesAuthority(&s.Certificate, &s.Registration)},
		Registration: &hosting.Registration{
			Mode: s.Registration.Mode, Directory: s.Registration.StaticManifestsDir, AwaitService: true,
			Options: registration.Options{Config: config, RefuseForeignTerms: s.Registration.ForeignTerms == hosting.ForeignTermsRefuse, Webhooks: definitions(&s.Registration, components, c.webhooks, webhooks, s.Logger)},
		},
	}
	options.Serving.Registry = env.Metrics.(serving.Registry)
	if options.Serving.Routes, err = hosting.Routes(webhooks, c.converters, s.Logger, env.Metrics); err != nil {
		return nil, err
	}
	if managed != nil {
		options.Serving.Checks = append(slices.Clone(options.Serving.Checks), manager.ReadyChecks()...)
		options.Serving.LiveChecks = append(slices.Clone(options.Serving.LiveChecks), manager.LiveChecks()...)
		options.Parts = append(options.Parts, *managed)
	}
	if len(c.kinds) > 0 {
		options.Serving.Routes = reading(options.Serving.Routes, &env)
	}
	if options.Callers, err = a.authenticate(&s.Authentication, s.Authentication.Mode, env); err != nil {
		return nil, err
	}
	if options.Readers = options.Callers; s.Authentication.Metrics != s.Authentication.Mode {
		if options.Readers, err = a.authenticate(&s.Authentication, s.Authentication.Metrics, env); err != nil {
			return nil, err
		}
	}
	if s.Registration.Mode == registration.ModeAPI {
		r := options.Registration
		r.Client, r.EventSink = clients.Configurations, &events.EventSinkImpl{Interface: clients.Events}
		r.CRDs = clients.Definitions // a backstop may need it too
		if len(c.converters) > 0 {
			r.Conversions = func() []registration.Conversion { return hosting.Conversions(c.converters) }
		}
	}
	return hosting.New(options)
}

// parts converts components for the host.
func parts(components []Component) []hosting.Part {
	var parts []hosting.Part
	for _, c := range components {
		parts = append(parts, hosting.Part{Name: c.Name, Ready: c.Ready, Detail: c.Detail, Run: c.Run, Status: c.Status})
	}
	return parts
}
