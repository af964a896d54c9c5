// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/wire"
)

// Run runs the application until ctx ends, and all calls are answered. It answers
// reviews as soon as its certificate and its components are ready, and only then has
// the webhooks registered. What handlers may stand on, components and the
// controllers' cache, ends after the last call; a failure of any of it ends Run, which
// returns it. The error names every mistake in the settings.
func (a *App) Run(ctx context.Context, s Settings) error {
	limitMemory()
	c, err := a.choose(&s)
	if err != nil {
		return err
	}
	client, err := a.validate(&s, c)
	if err != nil {
		return err
	}
	if c.serves() {
		logger := cmp.Or(s.Logger, slog.Default())
		find := func(ctx context.Context) error { return s.Registration.findOwner(ctx, client) }
		if err := waitFor(ctx, logger, "the API server", isAway, find); err != nil {
			return err
		}
	}
	p, err := a.build(&s, c, client)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// A process is all that one run runs, wired.
type process struct {
	logger     *slog.Logger
	version    string
	components []Component
	manager    manager.Manager // nil without controllers
	converts   bool            // what the manager reads may have to be converted here

	// All nil without webhooks; the keeper also if somebody else registers them.
	source   certificate.Source
	listener *serving.Server
	keeper   registrar
	reach    *reach
	leader   *leader // nil if this replica always leads
	elected  componentsLeader
	callers  *Authentication // nil if everybody may call
	readers  *Authentication // of metrics; nil if everybody may read them
	private  *privatePaths   // nil if paths are those of the definitions
}

// metricsRegistry takes metrics, and shows those of controller-runtime too.
type metricsRegistry struct {
	prometheus.Registerer
	prometheus.Gatherer
}

func newMetricsRegistry(controls bool) serving.Registry {
	own := prometheus.NewRegistry()
	if controls { // whose metrics have those of the process
		return metricsRegistry{own, prometheus.Gatherers{own, controllermetrics.Registry}}
	}
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return own
}

// build wires what the settings say; they were validated. It starts nothing.
func (a *App) build(s *Settings, c *chosen, client *rest.Config) (*process, error) {
	p := &process{logger: s.Logger, version: a.version, converts: len(c.converters) > 0}
	if p.logger == nil {
		p.logger = slog.Default()
	}
	var err error
	if len(c.controllers) > 0 {
		if p.manager, err = a.manage(s, c, client, p.logger); err != nil {
			return nil, err
		}
	}
	if !c.serves() {
		return p, nil
	}
	var clients kubernetes.Interface
	if client != nil {
		if clients, err = kubernetes.NewForConfig(client); err != nil {
			return nil, err
		}
	}
	registry := newMetricsRegistry(p.manager != nil)
	webhooks := c.webhooks
	env := Environment{Client: client, Logger: p.logger, Metrics: registry, Changed: p.notifyKeeper, Leader: p.elected.ask}
	for _, build := range c.components {
		component, err := build(env)
		if err != nil {
			return nil, err
		}
		p.components = append(p.components, component)
		webhooks = append(webhooks[:len(webhooks):len(webhooks)], component.Webhooks...)
	}
	if err := errors.Join(collisions(webhooks)...); err != nil {
		return nil, err
	}
	if webhooks, err = s.Registration.Apply(webhooks); err != nil {
		return nil, err
	}
	config := s.Registration.Config()
	if namespace, name, ok := s.Certificate.AuthoritySecret(config.Endpoint); ok && s.LeaderElection.Enabled {
		if p.leader, err = newLeader(clients.CoordinationV1(), namespace, name, s.LeaderElection, p.logger); err != nil {
			return nil, err
		}
	}
	if err := p.elected.stand(p.leader, s, a.name, clients, p.logger); err != nil {
		return nil, err
	}
	authority := certificate.AuthorityOptions{Leading: p.leader.Leading, Logger: p.logger, Registry: registry}
	if s.Registration.Mode == registration.ModeAPI { // else nobody here knows what clients are told to trust
		authority.Published = p.published
	}
	if p.source, err = s.Certificate.open(clients, config.Endpoint, config.ConversionEndpoint, authority); err != nil {
		return nil, err
	}
	if p.callers, err = a.authenticate(&s.Authentication, s.Authentication.Mode, env); err != nil {
		return nil, err
	}
	if p.readers = p.callers; s.Authentication.Metrics != s.Authentication.Mode {
		if p.readers, err = a.authenticate(&s.Authentication, s.Authentication.Metrics, env); err != nil {
			return nil, err
		}
	}
	if p.private, err = s.newPrivatePaths(p.source, p.paths); err != nil {
		return nil, err
	}
	if p.listener, err = p.listen(s.Serving, webhooks, c.converters, registry); err != nil {
		return nil, err
	}
	options := registration.Options{
		Config:   config,
		Webhooks: p.definitions(&s.Registration, c.webhooks, webhooks),
		CABundle: p.caBundle,
		Leading:  p.leader.Leading,
		Logger:   p.logger,
		Registry: registry,
	}
	if s.Registration.Mode == registration.ModeAPI {
		if err := p.registerConverters(&options, c.converters, client); err != nil {
			return nil, err
		}
	}
	p.reach = newReach(config, s.Registration.Mode)
	p.keeper, err = s.Registration.register(clients, options)
	return p, err
}

func (p *process) listen(options serving.Options, webhooks []admission.Webhook, converters []conversion.Converter, registry serving.Registry) (*serving.Server, error) {
	options.Logger = p.logger
	options.Registry = registry
	options.GetCertificate = p.source.GetCertificate
	options.CertificateNotAfter = p.source.NotAfter
	options.Checks = []serving.Check{{Name: "certificate", Ready: p.source.Ready, Gate: true}}
	for _, component := range p.components {
		if component.Ready != nil {
			options.Checks = append(options.Checks, serving.Check{Name: component.Name, Ready: component.Ready, Detail: component.Detail, Gate: true})
		}
	}
	p.guard(&options)
	var err error
	if options.Routes, err = routes(webhooks, converters, p.logger, registry); err != nil {
		return nil, err
	}
	return serving.New(options)
}

func routes(webhooks []admission.Webhook, converters []conversion.Converter, logger *slog.Logger, registry prometheus.Registerer) ([]serving.Route, error) {
	metrics, err := wire.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	routes, err := conversionRoutes(converters, logger, metrics)
	if err != nil {
		return nil, err
	}
	for _, webhook := range webhooks {
		handler, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: logger, Metrics: metrics})
		if err != nil {
			return nil, err
		}
		routes = append(routes, serving.Route{Path: webhook.Path, Handler: handler, Flow: wire.AdmissionFlow})
	}
	return routes, nil
}

// ready is nil once reviews can be answered.
func (p *process) ready() error {
	errs := []error{p.source.Ready()}
	for _, component := range p.components {
		if component.Ready != nil {
			errs = append(errs, component.Ready())
		}
	}
	if p.callers != nil && p.callers.Ready != nil {
		errs = append(errs, p.callers.Ready())
	}
	if p.private != nil {
		errs = append(errs, p.private.ready())
	}
	return errors.Join(errs...)
}

// caBundle is what the API server shall trust. It is not told before this server
// can answer, and is called: until then it has no webhook that it could miss.
func (p *process) caBundle() ([]byte, error) {
	if err := errors.Join(p.ready(), p.reach.err()); err != nil {
		return nil, err
	}
	if p.private != nil {
		if err := p.private.known(); err != nil {
			return nil, err
		}
	}
	return p.source.CABundle(), nil
}

// paths are those that the API server is told now, if that is known.
func (p *process) paths() ([]string, bool) {
	if keeper, ok := p.keeper.(interface{ Paths() ([]string, bool) }); ok {
		return keeper.Paths()
	}
	return nil, false // it is made after the listener
}

// published are the CA bundles that clients are told now.
func (p *process) published() ([][]byte, error) {
	if keeper, ok := p.keeper.(interface{ Published() ([][]byte, error) }); ok {
		return keeper.Published()
	}
	return nil, errors.New("the webhook configurations were not read yet") // it is made after the source
}

func (p *process) run(ctx context.Context) error {
	if p.listener == nil {
		return p.manager.Start(ctx)
	}
	if err := p.bind(ctx); err != nil {
		return err
	}
	log := p.logger.With("version", p.version)
	if address := p.listener.MetricsAddr(); address != nil {
		log = log.With("metrics", address.String())
	}
	log.Info("starting")
	p.tellWhoMayCall()
	below, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, below := errgroup.WithContext(below)
	for _, component := range p.components {
		if component.Run != nil {
			group.Go(func() error { return component.Run(below) })
		}
	}
	group.Go(func() error { return p.source.Run(below) })
	if p.callers != nil && p.callers.Run != nil {
		group.Go(func() error { return p.callers.Run(below) })
	}
	if p.readers != nil && p.readers != p.callers && p.readers.Run != nil {
		group.Go(func() error { return p.readers.Run(below) })
	}
	group.Go(func() error { tuneHeap(below); return nil })
	if p.manager != nil {
		group.Go(func() error {
			if p.converts && !p.certified(below) {
				return nil
			}
			if err := p.manager.Start(below); err != nil {
				return fmt.Errorf("controllers: %w", err)
			}
			return nil
		})
	}
	if p.keeper != nil {
		group.Go(func() error { return p.keeper.Run(below) })
	}
	for _, leader := range p.leaders() {
		// A replica that is going to end gives up the lease at once, and goes on serving.
		group.Go(func() error {
			leading, stop := context.WithCancel(ctx)
			defer stop()
			defer context.AfterFunc(below, stop)()
			return leader.Run(leading)
		})
	}
	group.Go(func() error { return p.notify(below) })
	group.Go(func() error {
		defer cancel()
		// A component that fails ends the serving too.
		serving, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(below, stop)()
		return p.listener.Run(serving)
	})
	return group.Wait()
}

// certified waits until there is a certificate, and so converters answer. It is false
// if ctx ends before.
func (p *process) certified(ctx context.Context) bool {
	for {
		changed := p.source.Changed()
		if p.source.Ready() == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// notify tells of the moment from which this server can answer, and the keeper of
// that, of each new certificate and of each change of the leader.
func (p *process) notify(ctx context.Context) error {
	ready := time.NewTicker(50 * time.Millisecond)
	defer ready.Stop()
	waiting := ready.C
	var reached chan struct{}
	var dialling sync.WaitGroup
	defer dialling.Wait()
	for {
		changed, elected := p.source.Changed(), p.leader.Changed()
		if waiting != nil && p.ready() == nil {
			waiting = nil
			p.logger.LogAttrs(ctx, slog.LevelInfo, "ready", p.status()...)
			p.notifyKeeper()
			if p.reach.err() != nil {
				reached = p.reach.reached
				dialling.Go(func() {
					p.reach.wait(ctx, p.source.CABundle, func() bool {
						bundles, err := p.published()
						return err == nil && len(bundles) > 0
					})
				})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			p.notifyKeeper()
		case <-elected:
			p.notifyKeeper()
		case <-reached:
			reached = nil
			p.notifyKeeper()
		case <-waiting:
		}
	}
}

func (p *process) status() []slog.Attr {
	var attrs []slog.Attr
	for _, component := range p.components {
		if component.Status != nil {
			attrs = append(attrs, component.Status())
		}
	}
	return attrs
}

func (p *process) notifyKeeper() {
	if p.keeper != nil {
		p.keeper.Notify()
	}
}
