// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/informers"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
	"github.com/sallyport-io/sallyport/wire"
)

// host serves the webhooks of one process.
type host struct {
	settings *settings
	webhooks []*Webhook
	log      *slog.Logger
	metrics  *tee

	completed *config.CompletedConfig
	cloud     cloudprovider.Interface
	informers informers.SharedInformerFactory

	handlers  []admission.Handler // in the order of webhooks
	source    certificate.Source
	server    *serving.Server
	callers   callers
	registrar registrar
}

// registrar registers webhooks, by an API server or by files.
type registrar interface {
	Run(ctx context.Context) error
	Notify()
}

// open makes all that is served, and opens the port. Whatever goes wrong that can be seen
// before the first call is an error.
func open(ctx context.Context, s *settings, webhooks []*Webhook, completed *config.CompletedConfig, initialize app.InitCloudFunc) (_ *host, err error) {
	h := &host{
		settings: s, webhooks: clone(webhooks), completed: completed, metrics: newTee(),
		log:       slog.New(logr.ToSlogHandler(klog.Background())).With("component", "webhooks"),
		informers: informers.NewSharedInformerFactory(completed.Client, 0),
	}
	defer func() {
		if err != nil {
			h.metrics.close()
		}
	}()
	if h.cloud = initialize(completed); h.cloud == nil {
		return nil, errors.New("the cloud initializer has made no cloud: set --cloud-provider to one that this program has")
	}
	if !h.initializes() { // what New says against its webhook is told at once
		if err := h.makeHandlers(); err != nil {
			return nil, err
		}
	}
	if h.callers, err = h.newCallers(); err != nil {
		return nil, err
	}
	if err := h.newSource(); err != nil {
		return nil, err
	}
	if err := h.newServer(); err != nil {
		return nil, err
	}
	if h.registrar, err = h.newRegistrar(); err != nil {
		return nil, err
	}
	return h, h.server.Listen(ctx)
}

// clone gives each webhook of a run a slot of its own.
func clone(webhooks []*Webhook) []*Webhook {
	out := make([]*Webhook, len(webhooks))
	for i, w := range webhooks {
		copied := w.defaulted()
		out[i] = &copied
	}
	return out
}

// initializes tells whether anybody wants an initialised cloud. If so nobody uses the
// cloud before: no provider expects to be asked while it is initialised.
func (h *host) initializes() bool {
	return slices.ContainsFunc(h.webhooks, func(w *Webhook) bool { return w.NeedsInitializedCloud })
}

func (h *host) newSource() error {
	authority := certificate.AuthorityOptions{Logger: h.log, Registry: h.metrics}
	if h.settings.registration == registration.ModeAPI { // else nobody here knows what clients are told to trust
		authority.Published = h.published
	}
	source, err := h.settings.certificateSource(h.completed.Client, authority)
	if err != nil {
		return err
	}
	h.source, err = h.settings.withNames(source, certificate.FilesOptions{Logger: h.log})
	return err
}

func (h *host) newServer() error {
	s := h.settings
	configure, err := s.tls()
	if err != nil {
		return err
	}
	reviews, err := wire.NewMetrics(h.metrics)
	if err != nil {
		return err
	}
	o := s.serving()
	o.ConfigureTLS = configure
	o.Logger, o.Registry = h.log, h.metrics
	o.GetCertificate, o.CertificateNotAfter = h.source.GetCertificate, h.source.NotAfter
	o.Checks = []serving.Check{{Name: "certificate", Ready: h.source.Ready, Gate: true}}
	if h.callers.authenticate != nil {
		o.Authenticate, o.ClientCertificates = h.callers.authenticate, true
		if h.callers.ready != nil {
			o.Checks = append(o.Checks, serving.Check{Name: "authentication", Ready: h.callers.ready, Gate: true})
		}
	}
	for _, w := range h.webhooks {
		handler, err := wire.NewAdmission(w.Definition, wire.AdmissionOptions{Logger: h.log, Metrics: reviews})
		if err != nil {
			return err
		}
		o.Routes = append(o.Routes, serving.Route{Path: w.Definition.Path, Handler: handler, Flow: wire.AdmissionFlow})
		o.Checks = append(o.Checks, serving.Check{Name: w.Name, Ready: w.Definition.Handler.(*slot).ready})
	}
	h.server, err = serving.New(o)
	return err
}

// newRegistrar makes who registers; nil if it is somebody else.
func (h *host) newRegistrar() (registrar, error) {
	config, err := h.settings.config()
	if err != nil {
		return nil, err
	}
	definitions := h.settings.definitions(h.webhooks)
	webhooks := func() []admission.Webhook { return definitions }
	// The wedge rules are known now, and not when the API server is there.
	if _, err := registration.Build(config, definitions, nil); err != nil {
		return nil, err
	}
	switch h.settings.registration {
	case registration.ModeAPI:
		return registration.NewKeeper(registration.Options{
			Config: config, Client: h.completed.Client.AdmissionregistrationV1(),
			Webhooks: webhooks, CABundle: h.caBundle, Logger: h.log, Registry: h.metrics,
		})
	case registration.ModeManifest:
		return registration.NewFiles(registration.FilesOptions{
			Config: config, Directory: h.settings.staticManifestsDir, Webhooks: webhooks, CABundle: h.caBundle, Logger: h.log,
		})
	default:
		return nil, nil
	}
}

// definitions are the webhooks as the flags want them registered.
func (s *settings) definitions(webhooks []*Webhook) []admission.Webhook {
	out := make([]admission.Webhook, len(webhooks))
	for i, w := range webhooks {
		out[i] = w.Definition
		out[i].FailurePolicy = cmp.Or(admissionregistrationv1.FailurePolicyType(s.failurePolicy), out[i].FailurePolicy)
		out[i].TimeoutSeconds = cmp.Or(s.timeoutSeconds, out[i].TimeoutSeconds)
	}
	return out
}

// caBundle is what the API server shall trust. It is not told before this process can
// answer.
func (h *host) caBundle() ([]byte, error) {
	if err := h.ready(); err != nil {
		return nil, err
	}
	return h.source.CABundle(), nil
}

func (h *host) ready() error {
	errs := []error{h.source.Ready()}
	if h.callers.ready != nil {
		errs = append(errs, h.callers.ready())
	}
	for _, w := range h.webhooks {
		errs = append(errs, w.Definition.Handler.(*slot).ready())
	}
	return errors.Join(errs...)
}

// published are the CA bundles that clients are told now.
func (h *host) published() ([][]byte, error) {
	if keeper, ok := h.registrar.(interface{ Published() ([][]byte, error) }); ok {
		return keeper.Published()
	}
	return nil, errors.New("the webhook configurations were not read yet") // it is made after the source
}

// run serves until ctx ends, and all calls are answered. A failure of anything ends it.
func (h *host) run(ctx context.Context) error {
	defer h.metrics.close()
	var names []string
	for _, w := range h.webhooks {
		names = append(names, w.Name)
	}
	h.log.Info("serving webhooks", slog.String("webhooks", strings.Join(names, ",")), slog.String("address", h.server.Addr().String()),
		slog.String("authentication", h.settings.callers()), slog.String("registration", string(h.settings.registration)))
	if h.settings.callers() == authenticationNone && !h.settings.bindAddress.IsLoopback() {
		h.log.Warn("anybody who reaches the port can call the webhooks: see --webhook-authentication", slog.String("address", h.server.Addr().String()))
	}

	// What handlers stand on ends after the last call.
	below, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, below := errgroup.WithContext(below)
	group.Go(func() error { return h.source.Run(below) })
	for _, n := range h.source.(*byName).named {
		group.Go(func() error { return n.source.Run(below) })
	}
	if h.callers.run != nil {
		group.Go(func() error { return h.callers.run(below) })
	}
	group.Go(func() error { return h.prepare(below) })
	if h.registrar != nil {
		group.Go(func() error { return h.registrar.Run(below) })
		group.Go(func() error { h.notify(below); return nil })
	}
	group.Go(func() error {
		defer cancel()
		// A part that fails ends the serving too.
		serving, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(below, stop)()
		return h.server.Run(serving)
	})
	return group.Wait()
}

// prepare initialises the cloud if anybody wants that, makes the handlers that wait for
// it, and lets calls to them when the informers that they have asked for have synced.
func (h *host) prepare(ctx context.Context) error {
	if h.initializes() {
		if err := h.initializeCloud(ctx); err != nil {
			return err
		}
		if err := h.makeHandlers(); err != nil {
			return err
		}
	}
	defer h.informers.Shutdown()
	h.informers.StartWithContext(ctx)
	for _, synced := range h.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil // it is the end
		}
	}
	for i, w := range h.webhooks {
		w.Definition.Handler.(*slot).handler.Store(&h.handlers[i])
	}
	<-ctx.Done()
	return nil
}

func (h *host) initializeCloud(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the cloud provider %s has panicked while it was initialized: %v", h.cloud.ProviderName(), value)
		}
	}()
	h.cloud.Initialize(h.completed.ClientBuilder, ctx.Done())
	if user, ok := h.cloud.(cloudprovider.InformerUser); ok {
		user.SetInformers(h.informers)
	}
	return nil
}

// makeHandlers calls New of each webhook.
func (h *host) makeHandlers() error {
	h.handlers = make([]admission.Handler, len(h.webhooks))
	var errs []error
	for i, w := range h.webhooks {
		handler, err := w.New(Dependencies{
			Cloud: h.cloud, Client: h.completed.Client, Informers: h.informers, Recorder: h.completed.EventRecorder, Logger: h.log.With("webhook", w.Name), Metrics: h.metrics,
		})
		if err == nil && handler == nil {
			err = errors.New("New has made no handler")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", w.Name, err))
		}
		h.handlers[i] = handler
	}
	return errors.Join(errs...)
}

// notify tells the registrar when this process can answer, and of each new certificate.
func (h *host) notify(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	waiting := ticker.C
	for {
		changed := h.source.Changed()
		if waiting != nil && h.ready() == nil {
			waiting = nil
			h.log.Info("webhooks are ready")
			h.registrar.Notify()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			h.registrar.Notify()
		case <-waiting:
		}
	}
}
