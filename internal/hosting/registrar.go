// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/staticmanifests"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Registration configures who registers the webhooks, and which.
type Registration struct {
	Mode registration.Mode
	// Options are for [registration.ModeAPI]; config and webhooks are also for
	// [registration.ModeManifest]. Paths are those of the definitions. The host sets the CA
	// bundles, the leader, the logger and the registry.
	registration.Options
	// Directory is for [registration.ModeManifest].
	Directory string
	// EventSink receives events about configurations that other clients keep changing; nil
	// disables them.
	EventSink events.EventSink
	// AwaitService makes a server that registers itself wait until its Service leads to a ready
	// server.
	AwaitService bool
}

// registrar registers webhooks through the API server or in files. Its zero value registers
// nothing.
type registrar struct {
	run    func(context.Context) error
	notify func()
	// published returns the CA bundles that clients currently trust; nil if unknown here.
	published func() ([][]byte, error)
	// refused returns the API server's reason for rejecting every webhook; nil if unknown here.
	refused func() error
	// forbidden returns why what the API server calls cannot be kept up to date; nil if unknown here.
	forbidden func() error
	// foreign describes the terms of other clients that narrow the webhooks; empty for none.
	foreign atomic.Pointer[string]
	// paths returns the paths that the API server currently calls; nil if unknown here.
	paths func() (paths []string, known bool)
}

// tell notifies the registrar that the desired registration may have changed.
func (r *registrar) tell() {
	if r.notify != nil {
		r.notify()
	}
}

// detail is what /readyz?verbose shows of a registration that holds.
func (r *registrar) detail() string {
	var details []string
	if text := r.foreign.Load(); text != nil && *text != "" {
		details = append(details, "terms of other clients narrow the webhooks: "+*text)
	}
	if err := r.forbidden(); err != nil {
		details = append(details, err.Error())
	}
	return strings.Join(details, "; ")
}

// known reports whether the webhooks are registered.
func (r *registrar) known() bool {
	bundles, err := r.published()
	return err == nil && len(bundles) > 0
}

// newRegistrar creates the registrar.
func (h *Host) newRegistrar(o *Registration, registry serving.Registry) error {
	h.reach = newReach(o)
	if o == nil {
		return nil
	}
	options := o.Options
	options.CABundle, options.ConversionCABundle = h.caBundle, h.conversionCABundle
	options.Leading, options.Logger, options.Registry = h.leader.Leading, h.logger, registry
	options.ForeignTerms = func(description string) { h.registrar.foreign.Store(&description) }
	options.Webhooks = func() []admission.Webhook { return h.private.onWebhooks(o.Webhooks()) }
	if o.Conversions != nil {
		options.Conversions = func() []registration.Conversion { return h.private.onConversions(o.Conversions()) }
	}
	switch o.Mode {
	case registration.ModeAPI:
		run := (*registration.Controller).Run
		if o.EventSink != nil {
			recorder := &eventRecorder{sink: o.EventSink}
			options.Events, run = recorder, recorder.run
		}
		controller, err := registration.NewController(options)
		if err != nil {
			return err
		}
		r := &h.registrar
		r.run = func(ctx context.Context) error { return run(controller, ctx) }
		r.notify, r.published, r.paths = controller.Notify, controller.Published, controller.Paths
		r.refused, r.forbidden = controller.Refused, controller.Forbidden
	case registration.ModeManifest:
		files, err := staticmanifests.New(staticmanifests.Options{
			Config: options.Config, Directory: o.Directory, Webhooks: options.Webhooks, CABundle: options.CABundle, Logger: options.Logger,
		})
		if err != nil {
			return err
		}
		h.registrar.run, h.registrar.notify = files.Run, files.Notify
	}
	return nil
}

// caBundle returns the CA bundle to register. It returns an error until this server can answer:
// until it is registered, the API server does not miss it.
func (h *Host) caBundle() ([]byte, error) {
	if err := errors.Join(h.Ready(), h.reach.err(), h.private.known()); err != nil {
		return nil, err
	}
	return h.source.CABundle(), nil
}

// conversionCABundle returns the CA bundle to register for conversion. It is available as soon
// as there is a certificate: converters need nothing more, and other parts of the process may
// need converters.
func (h *Host) conversionCABundle() ([]byte, error) {
	errs := []error{h.source.Ready()}
	if h.private != nil {
		errs = append(errs, h.private.ready())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return h.source.CABundle(), nil
}

// eventRecorder records nothing until its controller runs, because a broadcaster starts when it is
// created.
type eventRecorder struct {
	events.EventRecorder
	sink events.EventSink
}

// run runs the controller and sends its events meanwhile.
func (r *eventRecorder) run(controller *registration.Controller, ctx context.Context) error { //nolint:revive // it takes the place of the method expression (*Controller).Run
	broadcaster := events.NewBroadcaster(r.sink)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	r.EventRecorder = broadcaster.NewRecorder(scheme.Scheme, registration.DefaultFieldManager)
	return controller.Run(ctx)
}
