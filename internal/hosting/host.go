// SPDX-License-Identifier: Apache-2.0

// Package hosting implements the lifecycle of a process that serves webhooks. It starts and
// stops, in order, the certificate source, the parts that handlers depend on, registration,
// leader election and the listener.
//
// Everything starts at once. The host answers reviews once everything is ready, and only then
// registers the webhooks. On shutdown it releases its lease immediately and drains; the parts
// stop after the last call. If anything fails, everything stops.
package hosting

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/serving"
)

// Options configure a [Host].
type Options struct {
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Serving has the routes, the addresses, the limits, and additional checks. The host sets
	// the certificate and authentication.
	Serving serving.Options

	// Certificate creates the source of the serving certificate, given the authority options
	// that depend on the host. It is nil if the serving options have a certificate that needs
	// no maintenance.
	Certificate func(certificate.AuthorityOptions) (certificate.Source, error)
	// Parts are the parts that handlers depend on, and others that run as long as handlers are
	// called.
	Parts []Part
	// Changed signals that the result of a part's Ready, or the desired registration, may have
	// changed. It may be nil.
	Changed *Signal

	// Callers authenticates callers of webhooks, Readers those of metrics; nil accepts any
	// caller.
	Callers, Readers *Authentication
	// PrivatePaths configures private paths; nil disables them.
	PrivatePaths *PrivatePaths

	// Registration configures registration; nil if this host does not register the webhooks.
	Registration *Registration
	// Leader reports whether this replica leads; nil means always.
	Leader *Leader
}

// A Part is something that handlers depend on.
type Part struct {
	// Name is its name in /readyz.
	Name string
	// Ready returns nil once the host can answer reviews; see [serving.Check]. It is called
	// after a signal on [Options.Changed]. Nil means immediately.
	Ready func() error
	// Ungated lets the host answer reviews before the part is ready. Handlers return an error
	// while they cannot decide.
	Ungated bool
	// Detail is [serving.Check.Detail].
	Detail func() string
	// Run runs until the context ends, after the last call, and then returns nil. It may be
	// nil.
	Run func(ctx context.Context) error
	// Certified parts start once there is a certificate, because the objects that they read may
	// need conversion by this process.
	Certified bool
	// Status is logged once the host is ready. It may be nil.
	Status func() slog.Attr
}

// Authentication authenticates callers. It runs until the last call is answered.
type Authentication struct {
	// Authenticate is called before each request is handled; see [serving.Options].
	Authenticate func(*http.Request) error
	// Ready returns nil once Authenticate can be called. It may be nil.
	Ready func() error
	// Run runs until the context ends, and then returns nil. It may be nil.
	Run func(ctx context.Context) error
}

// A Signal notifies a receiver of a change.
type Signal struct{ sent chan struct{} }

// NewSignal returns a signal that has not been sent.
func NewSignal() *Signal { return &Signal{make(chan struct{}, 1)} }

// Send sends the signal. It does not block and may be called at any time.
func (s *Signal) Send() {
	select {
	case s.sent <- struct{}{}:
	default: // the previous signal is pending
	}
}

// Host runs the servers and parts of one process. Create it with [New].
type Host struct {
	logger    *slog.Logger
	parts     []Part
	changed   *Signal
	source    certificate.Source // nil if the certificate needs no maintenance
	checks    []serving.Check
	callers   *Authentication
	readers   *Authentication
	private   *privatePaths // nil if paths are not private
	registrar registrar
	reach     *reach
	leader    *Leader
	server    *serving.Server
}

// New wires the host. It starts nothing and opens no listener.
func New(o Options) (*Host, error) {
	h := &Host{
		logger: cmp.Or(o.Logger, slog.Default()), parts: o.Parts, changed: cmp.Or(o.Changed, NewSignal()),
		callers: o.Callers, readers: o.Readers, leader: o.Leader,
	}
	o.Serving.Logger = cmp.Or(o.Serving.Logger, h.logger)
	// The registrar comes first, because the source and the private paths refer to it. It calls
	// them only when it runs, through methods of the host.
	err := h.newRegistrar(o.Registration, o.Serving.Registry)
	if err != nil {
		return nil, err
	}
	if o.Certificate != nil {
		h.source, err = o.Certificate(certificate.AuthorityOptions{
			Published: h.registrar.published, Leading: h.leader.Leading, Logger: h.logger, Registry: o.Serving.Registry,
		})
		if err != nil {
			return nil, err
		}
		o.Serving.GetCertificate, o.Serving.CertificateNotAfter = h.source.GetCertificate, h.source.NotAfter
	}
	if h.private, err = o.PrivatePaths.over(h.source, h.registrar.paths); err != nil {
		return nil, err
	}
	h.guard(&o.Serving)
	h.server, err = serving.New(o.Serving)
	return h, err
}

// guard makes the listener wait for the checks, and authenticates callers and readers of
// metrics.
func (h *Host) guard(options *serving.Options) {
	check := func(name string, ready func() error, detail func() string, gate bool) {
		if ready != nil {
			h.checks = append(h.checks, serving.Check{Name: name, Ready: ready, Detail: detail, Gate: gate})
		}
	}
	if h.source != nil {
		check("certificate", h.source.Ready, nil, true)
	}
	for _, part := range h.parts {
		check(part.Name, part.Ready, part.Detail, !part.Ungated)
	}
	if h.callers != nil {
		options.Authenticate, options.ClientCertificates = h.callers.Authenticate, true
		check("authentication", h.callers.Ready, nil, true)
	}
	if h.readers != nil {
		options.AuthenticateMetrics, options.ClientCertificates = h.readers.Authenticate, true
	}
	if h.private != nil {
		options.PathSegments, options.PlainPaths = h.private.segments, h.private.plain
		check("private-paths", h.private.ready, nil, true)
	}
	// Reviews and the registrar do not wait for the other checks: the server answers calls that
	// result from an earlier registration.
	options.Checks = slices.Concat(h.checks, options.Checks)
	if h.registrar.refused != nil {
		options.Checks = append(options.Checks, serving.Check{Name: "registration", Ready: h.registrar.refused, Detail: h.registrar.detail})
	}
}

// Server returns the listener.
func (h *Host) Server() *serving.Server { return h.server }

// Ready returns nil once the host can answer reviews.
func (h *Host) Ready() error {
	var errs []error
	for _, check := range h.checks {
		errs = append(errs, check.Ready())
	}
	return errors.Join(errs...)
}

// Run serves until ctx ends and all calls are answered. It must be called only once.
func (h *Host) Run(ctx context.Context) error {
	// Parts stop after the last call.
	below, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, below := errgroup.WithContext(below)
	// untilToldTo runs what must stop at shutdown or when a part fails.
	untilToldTo := func(run func(context.Context) error) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(below, stop)()
		return run(ctx)
	}
	for _, part := range h.parts {
		if part.Run != nil {
			group.Go(func() error {
				if part.Certified && !h.certified(below) {
					return nil
				}
				return part.Run(below)
			})
		}
	}
	if h.source != nil {
		group.Go(func() error { return h.source.Run(below) })
	}
	if h.callers != nil && h.callers.Run != nil {
		group.Go(func() error { return h.callers.Run(below) })
	}
	if h.readers != nil && h.readers != h.callers && h.readers.Run != nil {
		group.Go(func() error { return h.readers.Run(below) })
	}
	if h.registrar.run != nil {
		group.Go(func() error { return h.registrar.run(below) })
	}
	if h.leader != nil {
		// At shutdown, release the lease immediately and keep serving.
		group.Go(func() error { return untilToldTo(h.leader.Run) })
	}
	group.Go(func() error {
		h.follow(below)
		return nil
	})
	group.Go(func() error {
		defer cancel()
		return untilToldTo(h.server.Run)
	})
	return group.Wait()
}

// certified waits for a certificate, with which converters answer. It returns false if ctx ends
// first.
func (h *Host) certified(ctx context.Context) bool {
	for h.source != nil {
		changed := h.source.Changed()
		if h.source.Ready() == nil {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
	return true
}

// follow runs the checks whenever one may have changed, and announces when the host can answer.
// It notifies the registrar of that, and of changes of the certificate, the leader and the
// desired registration.
func (h *Host) follow(ctx context.Context) {
	opened, ready := h.server.Opened(), false
	var reached chan struct{}
	var dialling sync.WaitGroup
	defer dialling.Wait()
	for {
		var renewed <-chan struct{}
		if h.source != nil {
			renewed = h.source.Changed()
		}
		elected := h.leader.Changed()
		h.server.Recheck()
		if !ready && opened == nil && h.ungatedReady() {
			ready = true
			h.logger.LogAttrs(ctx, slog.LevelInfo, "ready", h.status()...)
			if h.reach.err() != nil {
				reached = h.reach.reached
				dialling.Go(func() { h.reach.wait(ctx, h.source.CABundle, h.registrar.known) })
			}
			h.registrar.tell()
		}
		select {
		case <-ctx.Done():
			return
		case <-opened:
			opened = nil
		case <-renewed:
		case <-elected:
		case <-reached:
			reached = nil
		case <-h.changed.sent:
		}
		h.registrar.tell()
	}
}

// ungatedReady reports whether the parts that the listener does not wait for are ready.
func (h *Host) ungatedReady() bool {
	return !slices.ContainsFunc(h.checks, func(c serving.Check) bool { return !c.Gate && c.Ready() != nil })
}

func (h *Host) status() []slog.Attr {
	var attrs []slog.Attr
	for _, part := range h.parts {
		if part.Status != nil {
			attrs = append(attrs, part.Status())
		}
	}
	return attrs
}
