// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/wire"
)

// A server is all that serve runs, wired.
type server struct {
	logger   *slog.Logger
	watcher  *poddefault.Watcher
	source   certificate.Source
	listener *serving.Server
	keeper   *registration.Keeper // nil: somebody else registers the webhooks
}

// build wires what the flags say; they were validated. It starts nothing.
func (o *serveOptions) build(client *rest.Config, config registration.Config, logger *slog.Logger) (*server, error) {
	clients, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	s := &server{logger: logger}
	if s.watcher, err = poddefault.Watch(client, logger); err != nil {
		return nil, err
	}
	if s.source, err = o.certificates.open(clients, config.Endpoint, logger); err != nil {
		return nil, err
	}
	webhooks, err := builtinWebhooks(s.watcher, o.settings)
	if err != nil {
		return nil, err
	}
	if webhooks, err = o.registration.apply(webhooks); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sallyport_poddefaults", Help: "PodDefaults known to this server.",
		}, func() float64 { return float64(s.watcher.Len()) }))
	if s.listener, err = o.listen(s, webhooks, registry); err != nil {
		return nil, err
	}
	if o.mode == registration.ModeAPI {
		s.keeper, err = registration.NewKeeper(registration.Options{
			Config:   config,
			Client:   clients.AdmissionregistrationV1(),
			Webhooks: func() []admission.Webhook { return webhooks },
			CABundle: s.caBundle,
			Logger:   logger,
			Registry: registry,
		})
	}
	return s, err
}

func (o *serveOptions) listen(s *server, webhooks []admission.Webhook, registry *prometheus.Registry) (*serving.Server, error) {
	metrics, err := wire.NewMetrics(registry)
	if err != nil {
		return nil, err
	}
	options := o.serving
	options.Logger = s.logger
	options.Registry = registry
	options.GetCertificate = s.source.GetCertificate
	options.CertificateNotAfter = s.source.NotAfter
	options.Checks = []serving.Check{
		{Name: "certificate", Ready: s.source.Ready, Gate: true},
		{Name: "poddefaults", Ready: s.watcher.Ready, Gate: true},
	}
	for _, webhook := range webhooks {
		handler, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: s.logger, Metrics: metrics})
		if err != nil {
			return nil, err
		}
		options.Routes = append(options.Routes, serving.Route{Path: webhook.Path, Handler: handler})
	}
	return serving.New(options)
}

// ready is nil once this server can answer.
func (s *server) ready() error { return errors.Join(s.source.Ready(), s.watcher.Ready()) }

// caBundle is what the API server shall trust. It is not told before this server
// can answer: until then it has no webhook that it could miss.
func (s *server) caBundle() ([]byte, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.source.CABundle(), nil
}

// run serves until the context ends and all calls are answered. What the handlers
// stand on ends after them.
func (s *server) run(ctx context.Context) error {
	if err := s.listener.Listen(ctx); err != nil {
		return err
	}
	log := s.logger.With("version", buildVersion())
	if address := s.listener.MetricsAddr(); address != nil {
		log = log.With("metrics", address.String())
	}
	log.Info("starting")
	below, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, below := errgroup.WithContext(below)
	group.Go(func() error { return s.watcher.Run(below) })
	group.Go(func() error { return s.source.Run(below) })
	go tuneHeap(below)
	if s.keeper != nil {
		group.Go(func() error { return s.keeper.Run(below) })
	}
	group.Go(func() error { return s.notify(below) })
	group.Go(func() error {
		defer cancel()
		// A component that fails ends the serving too.
		serving, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(below, stop)()
		return s.listener.Run(serving)
	})
	return group.Wait()
}

// notify tells of the moment from which this server can answer, and the keeper of
// that and of each new certificate.
func (s *server) notify(ctx context.Context) error {
	ready := time.NewTicker(50 * time.Millisecond)
	defer ready.Stop()
	waiting := ready.C
	for {
		changed := s.source.Changed()
		if waiting != nil && s.ready() == nil {
			waiting = nil
			s.logger.Info("ready", "poddefaults", s.watcher.Len())
			s.notifyKeeper()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			s.notifyKeeper()
		case <-waiting:
		}
	}
}

func (s *server) notifyKeeper() {
	if s.keeper != nil {
		s.keeper.Notify()
	}
}
