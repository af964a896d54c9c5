// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

// server is a webhook.Server for a manager of controller-runtime, see [New].
type server struct {
	plan    plan
	problem error // of the options; returned by Start
	mux     *http.ServeMux

	// register is a server of controller-runtime that is never started. It provides the
	// usual metrics and errors of registration.
	register webhook.Server

	mu    sync.Mutex
	paths []string // registered before the listener was created
	// listener serves later registrations.
	listener *serving.Server
	unserved error // about paths that the listener does not accept
	state    state
	ready    func() error // set with stateServing
}

var _ webhook.Server = (*server)(nil)

type state int

const (
	stateNew state = iota
	stateStarting
	stateServing
	stateEnding
)

// NewServer replaces controller-runtime's webhook.NewServer. Start, which the manager
// calls, reports problems of the options, as with controller-runtime's server. [New]
// reports them immediately, and has more options.
func NewServer(options webhook.Options) webhook.Server {
	s, err := New(Options{Options: options})
	if err != nil {
		failed := newServer(options.WebhookMux)
		failed.problem = err
		return failed
	}
	return s
}

// New returns a server that does not listen yet. The error reports all problems of the
// options. The files of a certificate are read by Start.
//
// Webhooks may be registered at any time, also while it runs, and are served from then on.
// Their paths are compared exactly. An invalid path makes Start fail; after Start, Register
// logs it and the checker of StartedChecker reports it. Other handlers of the WebhookMux are
// served too. Start drains when its context ends, and can be called once.
func New(options Options) (webhook.Server, error) {
	plan, err := options.plan()
	if err != nil {
		return nil, err
	}
	s := newServer(options.WebhookMux)
	s.plan = plan
	return s, nil
}

func newServer(mux *http.ServeMux) *server {
	if mux == nil {
		mux = http.NewServeMux()
	}
	return &server{mux: mux, register: webhook.NewServer(webhook.Options{WebhookMux: mux})}
}

// NeedLeaderElection returns false, because every replica serves.
func (s *server) NeedLeaderElection() bool { return false }

// WebhookMux returns the mux of the registered webhooks.
func (s *server) WebhookMux() *http.ServeMux { return s.mux }

// Register adds a webhook, also while the server runs. Like any webhook.Server, it panics if
// the path is taken. An invalid path makes Start fail. After Start, Register logs it and the
// checker of StartedChecker reports it.
func (s *server) Register(path string, hook http.Handler) {
	s.register.Register(path, hook)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		s.paths = append(s.paths, path)
		return
	}
	if err := s.listener.Handle(s.route(path)); err != nil {
		s.unserved = errors.Join(s.unserved, err)
		s.plan.serving.Logger.Error("a webhook that is registered cannot be served", slog.Any("error", err))
	}
}

// route returns the route of a webhook. It is for any method, because handlers of controller-runtime get all of them.
func (s *server) route(path string) serving.Route {
	return serving.Route{Path: path, AnyMethod: true, Answer: s.answer, Flow: wire.AdmissionFlow}
}

// answer serves a call with the mux. Its handlers may yield their seat while they wait, see
// admission.WithYield.
func (s *server) answer(ctx context.Context, w http.ResponseWriter, call serving.Call) {
	r := call.Request.WithContext(admission.WithYield(ctx, call.Yield))
	// A body of length 0 that was sent in chunks is not http.NoBody, as on any server.
	if r.Body != http.NoBody {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(call.Body)), int64(len(call.Body))
	}
	s.mux.ServeHTTP(w, r)
}

// Start serves the registered webhooks until ctx ends. Then it drains and returns nil. It must
// be called only once. It returns immediately if the port is negative.
func (s *server) Start(ctx context.Context) error {
	if s.problem != nil {
		return s.problem
	}
	s.mu.Lock()
	if s.state != stateNew {
		s.mu.Unlock()
		return errors.New("webhook server: has been started already: make a new one")
	}
	s.state = stateStarting
	s.mu.Unlock()
	if s.plan.disabled {
		return nil
	}

	host, done, err := s.build()
	if err == nil {
		defer done()
		err = host.Server().Listen(ctx)
	}
	if err != nil {
		return startError(err)
	}
	s.enter(stateServing, host.Ready)
	defer s.enter(stateEnding, nil)
	defer context.AfterFunc(ctx, func() { s.enter(stateEnding, nil) })()
	return host.Run(ctx)
}

// startError keeps the type of an error about a file: os.IsNotExist and os.IsPermission, by which projects tell a
// certificate that is not there yet, see through no other error.
func startError(err error) error {
	var about *fs.PathError
	if errors.As(err, &about) {
		return &fs.PathError{Op: "webhook server: " + about.Op, Path: about.Path, Err: about.Err}
	}
	return fmt.Errorf("webhook server: %w", err)
}

// build creates the listener. Done unregisters its metrics.
func (s *server) build() (host *hosting.Host, done func(), err error) {
	options := hosting.Options{Logger: s.plan.serving.Logger, Serving: s.plan.serving}
	if s.plan.serving.GetCertificate == nil { // otherwise TLSOpts set it
		options.Certificate = func(certificate.AuthorityOptions) (certificate.Source, error) {
			if s.plan.source != nil {
				return s.plan.source, nil
			}
			return certificate.NewFiles(s.plan.files)
		}
	}
	var own *prometheus.Registry
	if options.Serving.Registry == nil {
		own = prometheus.NewRegistry()
		options.Serving.Registry = own
	}
	options.Serving.Routes, options.Serving.Others = nil, s.other
	if s.plan.clientCA != "" {
		settings := serving.AuthenticationSettings{ClientCAFile: s.plan.clientCA}
		if options.Callers, err = hosting.ClientCA(&settings, options.Logger, options.Serving.Registry); err != nil {
			return nil, nil, err
		}
	}
	// Concurrent registrations wait for the listener.
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.paths {
		options.Serving.Routes = append(options.Serving.Routes, s.route(path))
	}
	if host, err = hosting.New(options); err != nil {
		return nil, nil, err
	}
	s.listener = host.Server()
	if own == nil {
		return host, func() {}, nil
	}
	return host, show(own, options.Logger), nil
}

// other returns the mux's handler for a request that is not for a webhook.
func (s *server) other(r *http.Request) http.Handler {
	if _, pattern := s.mux.Handler(r); pattern == "" {
		return nil
	}
	return s.mux
}

func (s *server) enter(state state, ready func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.ready = state, ready
}

// StartedChecker returns a readiness checker for the manager. It succeeds while the server
// serves all registered webhooks with a valid certificate, and fails once it drains.
func (s *server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.plan.disabled:
			return nil
		case s.state == stateEnding:
			return errors.New("webhook server is ending")
		case s.state != stateServing:
			return errors.New("webhook server has not been started yet")
		case s.unserved != nil:
			return fmt.Errorf("webhook server does not serve all that was registered: %w", s.unserved)
		}
		return s.ready()
	}
}
