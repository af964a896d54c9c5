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

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/informers"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
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

	handlers []admission.Handler // in the order of webhooks
	upstream *upstream           // nil without webhooks of upstream's builder
	changed  *hosting.Signal
	hosting  *hosting.Host
}

// open creates the host and opens the port. It returns every problem that can be detected
// before the first call.
func open(ctx context.Context, s *settings, webhooks []*Webhook, completed *config.CompletedConfig, initialize app.InitCloudFunc) (_ *host, err error) {
	h := &host{
		settings: s, webhooks: clone(webhooks), completed: completed, metrics: newTee(), changed: hosting.NewSignal(),
		log:       slog.New(logr.ToSlogHandler(klog.Background())).With("component", "webhooks"),
		informers: informers.NewSharedInformerFactory(completed.Client, 0),
	}
	defer func() {
		if err != nil {
			h.metrics.close()
		}
	}()
	if h.cloud = initialize(completed); h.cloud == nil {
		return nil, errors.New("the cloud initializer returned no cloud: set --cloud-provider to a provider of this program")
	}
	if h.upstream = newUpstream(h.webhooks); h.upstream != nil {
		if err := h.upstream.configure(completed); err != nil {
			return nil, err
		}
	}
	if !h.initializes() { // report errors of New early
		if err := h.makeHandlers(); err != nil {
			return nil, err
		}
	}
	options, err := h.options()
	if err != nil {
		return nil, err
	}
	if h.hosting, err = hosting.New(*options); err != nil {
		return nil, err
	}
	return h, h.hosting.Server().Listen(ctx)
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

// initializes reports whether a webhook needs an initialized cloud. If so, no webhook uses
// the cloud before: providers do not expect calls during initialization.
func (h *host) initializes() bool {
	return slices.ContainsFunc(h.webhooks, func(w *Webhook) bool { return w.NeedsInitializedCloud })
}

// options are the options of the host.
func (h *host) options() (*hosting.Options, error) {
	s := h.settings
	o := &hosting.Options{Logger: h.log, Serving: serving.Options{Settings: s.complete().Serving}, Changed: h.changed}
	named, err := s.namedCertificates(certificate.FilesOptions{Logger: h.log})
	if err != nil {
		return nil, err
	}
	o.Certificate = func(authority certificate.AuthorityOptions) (certificate.Source, error) {
		source, err := s.certificateSource(h.completed.Client, authority)
		return &byName{source, named}, err
	}
	if o.Callers, err = h.newCallers(); err != nil {
		return nil, err
	}
	if o.Serving.ConfigureTLS, err = s.tls(); err != nil {
		return nil, err
	}
	o.Serving.Registry = h.metrics
	var served []admission.Webhook
	for _, w := range h.webhooks {
		if w.upstream {
			continue
		}
		served = append(served, w.Definition)
		o.Parts = append(o.Parts, hosting.Part{Name: w.Name, Ready: w.Definition.Handler.(*slot).ready, Ungated: true})
	}
	if o.Serving.Routes, err = hosting.Routes(served, nil, h.log, h.metrics); err != nil {
		return nil, err
	}
	for _, w := range h.webhooks {
		if w.upstream {
			o.Serving.Routes = append(o.Serving.Routes, serving.Route{Path: w.Definition.Path, Answer: h.upstream.answer, Ungated: true})
		}
	}
	if err := h.count(o.Serving.Routes); err != nil {
		return nil, err
	}
	for _, n := range named {
		o.Parts = append(o.Parts, hosting.Part{Run: n.source.Run})
	}
	o.Parts = append(o.Parts, hosting.Part{Run: h.prepare})

	config := s.config()
	definitions := s.definitions(h.webhooks)
	if len(definitions) == 0 {
		return o, nil
	}
	// Check the wedge rules now, not when the API server is available.
	if _, err := registration.Build(config, definitions, nil); err != nil {
		return nil, err
	}
	o.Registration = &hosting.Registration{
		Mode: s.Registration.Mode, Directory: s.Registration.StaticManifestsDir,
		Options: registration.Options{
			Config: config, Client: h.completed.Client.AdmissionregistrationV1(), Webhooks: func() []admission.Webhook { return definitions },
		},
	}
	return o, nil
}

// definitions are the webhooks to register, with the flags applied.
func (s *settings) definitions(webhooks []*Webhook) []admission.Webhook {
	var out []admission.Webhook
	for _, w := range webhooks {
		if w.upstream {
			continue // the provider registers them
		}
		d := w.Definition
		d.FailurePolicy = cmp.Or(admissionregistrationv1.FailurePolicyType(s.Registration.FailurePolicy), d.FailurePolicy)
		d.TimeoutSeconds = cmp.Or(s.Registration.TimeoutSeconds, d.TimeoutSeconds)
		out = append(out, d)
	}
	return out
}

// run serves until ctx ends and all calls are answered. Any failure ends it.
func (h *host) run(ctx context.Context) error {
	defer h.metrics.close()
	var names []string
	for _, w := range h.webhooks {
		names = append(names, w.Name)
	}
	h.log.Info("serving webhooks", slog.String("webhooks", strings.Join(names, ",")), slog.String("address", h.hosting.Server().Addr().String()),
		slog.String("authentication", h.settings.callers()), slog.String("registration", string(h.settings.Registration.Mode)))
	if h.settings.callers() == serving.AuthenticationNone && !h.settings.bindIP().IsLoopback() {
		h.log.Warn("any client that reaches the port can call the webhooks: see --webhook-authentication", slog.String("address", h.hosting.Server().Addr().String()))
	}
	return h.hosting.Run(ctx)
}

// prepare initializes the cloud if a webhook needs it, creates the handlers that wait for
// it, and opens them to calls when their informers have synced.
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
			return nil // shutting down
		}
	}
	for i, w := range h.webhooks {
		if !w.upstream {
			w.Definition.Handler.(*slot).handler.Store(&h.handlers[i])
		}
	}
	h.changed.Send()
	<-ctx.Done()
	return nil
}

func (h *host) initializeCloud(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the cloud provider %s panicked during initialization: %v", h.cloud.ProviderName(), value)
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
		if w.upstream {
			continue
		}
		handler, err := w.New(Dependencies{
			Cloud: h.cloud, Client: h.completed.Client, Informers: h.informers, Recorder: h.completed.EventRecorder, Logger: h.log.With("webhook", w.Name), Metrics: h.metrics,
		})
		if err == nil && handler == nil {
			err = errors.New("New returned no handler")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook %s: %w", w.Name, err))
		}
		h.handlers[i] = handler
	}
	return errors.Join(errs...)
}
