// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Registration says who registers the webhooks, and what.
type Registration struct {
	Mode registration.Mode
	// Options are those of [registration.ModeAPI]; config and webhooks are for
	// [registration.ModeManifest] too. Paths are those of the definitions. CA bundles, leader, logger
	// and registry are set here.
	registration.Options
	// Directory is for [registration.ModeManifest].
	Directory string
	// EventSink takes events about configurations that somebody else changes; nil leaves
	// them out.
	EventSink events.EventSink
	// AwaitService has a server that registers itself wait until its Service leads to a
	// server that is ready.
	AwaitService bool
}

// registrar registers webhooks, by an API server or by files. Its zero value is somebody
// else.
type registrar struct {
	run    func(context.Context) error
	notify func()
	// published are the CA bundles that clients are told now; nil if nobody here knows.
	published func() ([][]byte, error)
	// refused is why the API server takes none of it; nil if nobody here knows.
	refused func() error
	// paths are those that the API server calls now; nil if nobody here knows.
	paths func() (paths []string, known bool)
}

// tell says that what is registered may have changed.
func (r *registrar) tell() {
	if r.notify != nil {
		r.notify()
	}
}

// known tells whether clients know of the webhooks already.
func (r *registrar) known() bool {
	bundles, err := r.published()
	return err == nil && len(bundles) > 0
}

// newRegistrar makes who registers.
func (h *Host) newRegistrar(o *Registration, registry serving.Registry) error {
	h.reach = newReach(o)
	if o == nil {
		return nil
	}
	options := o.Options
	options.CABundle, options.ConversionCABundle = h.caBundle, h.conversionCABundle
	options.Leading, options.Logger, options.Registry = h.leader.Leading, h.logger, registry
	options.Webhooks = func() []admission.Webhook { return h.private.onWebhooks(o.Webhooks()) }
	if o.Conversions != nil {
		options.Conversions = func() []registration.Conversion { return h.private.onConversions(o.Conversions()) }
	}
	switch o.Mode {
	case registration.ModeAPI:
		run := (*registration.Keeper).Run
		if o.EventSink != nil {
			recorder := &eventRecorder{sink: o.EventSink}
			options.Events, run = recorder, recorder.run
		}
		keeper, err := registration.NewKeeper(options)
		if err != nil {
			return err
		}
		h.registrar = registrar{
			run:    func(ctx context.Context) error { return run(keeper, ctx) },
			notify: keeper.Notify, published: keeper.Published, refused: keeper.Refused, paths: keeper.Paths,
		}
	case registration.ModeManifest:
		files, err := registration.NewFiles(registration.FilesOptions{
			Config: options.Config, Directory: o.Directory, Webhooks: options.Webhooks, CABundle: options.CABundle, Logger: options.Logger,
		})
		if err != nil {
			return err
		}
		h.registrar = registrar{run: files.Run, notify: files.Notify}
	}
	return nil
}

// caBundle is what the API server shall trust. It is not told before this server can
// answer, and is called: until then it has no webhook that it could miss.
func (h *Host) caBundle() ([]byte, error) {
	if err := errors.Join(h.Ready(), h.reach.err(), h.private.known()); err != nil {
		return nil, err
	}
	return h.source.CABundle(), nil
}

// conversionCABundle is what the API server shall trust for conversion. It is told as
// soon as there is a certificate: converters need nothing else, and what else the
// process stands on may need them.
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

// eventRecorder records nothing before its keeper runs: a broadcaster works from its
// making on.
type eventRecorder struct {
	events.EventRecorder
	sink events.EventSink
}

// run runs the keeper, and sends its events as long as it runs.
func (r *eventRecorder) run(keeper *registration.Keeper, ctx context.Context) error { //nolint:revive // it takes the place of the method expression (*Keeper).Run
	broadcaster := events.NewBroadcaster(r.sink)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	r.EventRecorder = broadcaster.NewRecorder(scheme.Scheme, registration.DefaultFieldManager)
	return keeper.Run(ctx)
}
