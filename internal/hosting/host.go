// SPDX-License-Identifier: Apache-2.0

// Package hosting is the lifecycle of a process that serves webhooks: its certificate, what
// its handlers stand on, who registers them, who leads, and the listener; the order in which
// they start and end.
//
// All of it starts together. Reviews are answered once everything is ready, and only then
// are the webhooks registered. When the process is told to end it gives up its lease at
// once and drains; what handlers stand on ends after the last call. A failure of any of it
// ends all of it.
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

	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/serving"
)

// Options say what a [Host] runs.
type Options struct {
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
	// Serving has the routes, the addresses, the limits, and checks that are none of this
	// host's. Certificate and callers are set here.
	Serving serving.Options

	// Certificate makes the source of the serving certificate. What an authority must know
	// of the host is in the options. Nil if the serving options have a certificate that
	// nobody has to keep.
	Certificate func(certificate.AuthorityOptions) (certificate.Source, error)
	// Parts are what handlers stand on, and what else runs as long as they are called.
	Parts []Part
	// Changed tells that a Ready of a part, or what is registered, may have changed. May be
	// nil.
	Changed *Signal

	// Callers tell who may call, and Readers who may read metrics; nil lets everybody.
	Callers, Readers *Authentication
	// PrivatePaths say whether paths are private; nil if they are not.
	PrivatePaths *PrivatePaths

	// Registration says who registers the webhooks; nil if nobody does here.
	Registration *Registration
	// Leader tells whether this replica leads; nil if it always does.
	Leader *Leader
}

// A Part is something that handlers stand on.
type Part struct {
	// Name is what /readyz calls it.
	Name string
	// Ready returns nil once reviews can be answered; see [serving.Check]. It is asked when
	// [Options.Changed] tells. Nil means at once.
	Ready func() error
	// Ungated has reviews answered before it is ready, by handlers that say why they cannot.
	Ungated bool
	// Detail is that of [serving.Check].
	Detail func() string
	// Run works until the context ends, after the last call, and then returns nil. Nil if
	// there is nothing to do.
	Run func(ctx context.Context) error
	// Certified parts run once there is a certificate: what they read may have to be
	// converted here.
	Certified bool
	// Status is logged when the host is ready. May be nil.
	Status func() slog.Attr
}

// Authentication tells who may call. It is there until the last call is answered.
type Authentication struct {
	// Authenticate is asked before each call; see [serving.Options].
	Authenticate func(*http.Request) error
	// Ready returns nil once it can be asked. May be nil.
	Ready func() error
	// Run works until the context ends, and then returns nil. May be nil.
	Run func(ctx context.Context) error
}

// A Signal tells one who waits that something has changed.
type Signal struct{ sent chan struct{} }

// NewSignal returns a signal that was not sent yet.
func NewSignal() *Signal { return &Signal{make(chan struct{}, 1)} }

// Send tells. It does not wait, and may be called at any time.
func (s *Signal) Send() {
	select {
	case s.sent <- struct{}{}:
	default: // the one before is still to be heeded
	}
}

// Host runs what one process serves. Make one with [New].
type Host struct {
	logger    *slog.Logger
	parts     []Part
	changed   *Signal
	source    certificate.Source // nil if nobody keeps the certificate
	checks    []serving.Check
	callers   *Authentication
	readers   *Authentication
	private   *privatePaths // nil if paths are those of the definitions
	registrar registrar
	reach     *reach
	leader    *Leader
	server    *serving.Server
}

// New wires what the options say. It starts nothing, and listens to nothing.
func New(o Options) (*Host, error) {
	h := &Host{
		logger: cmp.Or(o.Logger, slog.Default()), parts: o.Parts, changed: cmp.Or(o.Changed, NewSignal()),
		callers: o.Callers, readers: o.Readers, leader: o.Leader,
	}
	o.Serving.Logger = cmp.Or(o.Serving.Logger, h.logger)
	// Who registers is made first, for the source and private paths to ask. It asks them,
	// by the methods of the host, only when it runs.
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

// guard has the listener wait for what must be ready, and ask who calls and who reads
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
	// The others are none of what reviews, and the registrar itself, wait for: calls that
	// come because of an earlier registration are answered.
	options.Checks = slices.Concat(h.checks, options.Checks)
	if h.registrar.refused != nil {
		options.Checks = append(options.Checks, serving.Check{Name: "registration", Ready: h.registrar.refused})
	}
}

// Server is the listener.
func (h *Host) Server() *serving.Server { return h.server }

// Ready returns nil if reviews can be answered.
func (h *Host) Ready() error {
	var errs []error
	for _, check := range h.checks {
		errs = append(errs, check.Ready())
	}
	return errors.Join(errs...)
}

// Run serves until ctx ends, and all calls are answered. It can be called once.
func (h *Host) Run(ctx context.Context) error {
	// What handlers stand on ends after the last call.
	below, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, below := errgroup.WithContext(below)
	// untilToldTo runs what ends when the host is told to, or when a part fails.
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
		// A replica that is going to end gives up the lease at once, and goes on serving.
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

// certified waits until there is a certificate, and so converters answer. It is false
// if ctx ends before.
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

// follow has the checks looked at whenever one may pass, tells of the moment from which
// this host can answer, and the registrar of that, of each new certificate, and of each
// change of the leader or of what is to be registered.
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

// ungatedReady tells whether what the listener does not wait for is ready too.
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
