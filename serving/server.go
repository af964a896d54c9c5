// SPDX-License-Identifier: Apache-2.0

// Package serving is the TLS listener for webhooks: it limits the resources of callers,
// gives each request the deadline of its caller, sheds load, serves probes, and shuts down
// without losing a call. It handles HTTP, not reviews.
//
// Callers are not trusted. Requests are refused with an HTTP error and a short reason in
// plain text, never with a review, so that the webhook's failurePolicy decides.
//
// Experimental: only the types that the stable core names keep their promise, see docs/compatibility.md.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sallyport-io/sallyport/serving/internal/seats"
	"github.com/sallyport-io/sallyport/serving/internal/turns"
)

// The buffers of an HTTP/2 connection. Unread frames are not counted by any limit, so one
// connection must not hold as much as many of HTTP/1.1.
const (
	maxStreams    = 100
	receiveBuffer = 64 << 10
)

// lastRequests is the time for active requests once draining has ended.
const lastRequests = 5 * time.Second

// Server serves webhooks. Create one with [New].
type Server struct {
	options  Options
	log      *slog.Logger
	registry Registry
	metrics  *metrics
	routes   routes
	health   *health
	// otherDurations are the durations of all paths of Options.Others.
	otherDurations durations
	seats          *seats.Seats
	bodies         *bodies
	connections    *connections
	// plainConnections are the connections to the port for metrics and probes.
	plainConnections *connections

	webhooks *http.Server
	plain    *http.Server

	listener      net.Listener
	plainListener net.Listener // nil if disabled

	running  atomic.Bool
	draining atomic.Bool
	// closed is canceled when the server must stop immediately; close cancels it.
	closed context.Context
	close  context.CancelFunc
}

// New returns a server that does not listen yet. The error reports all problems of the
// options.
func New(options Options) (*Server, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	options.derive(memoryLimit())
	s := &Server{
		options:  options,
		log:      options.Logger,
		registry: options.Registry,
		metrics:  newMetrics(),
		seats:    seats.New(int(options.MaxConcurrentReviews), int(options.MaxWaitingReviews)),
		bodies:   newBodies(&options),
	}
	s.closed, s.close = context.WithCancel(context.Background())
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.registry == nil {
		s.registry = prometheus.NewRegistry()
	}
	if options.Others != nil {
		s.otherDurations = s.metrics.durationsOf(otherPaths)
	}
	s.health = newHealth(options.Checks, options.LiveChecks, &s.draining)
	s.connections = newConnections(int(options.MaxConnections), s.metrics.evicted, s.bodies)
	s.plainConnections = newConnections(int(options.MaxMetricsConnections), s.metrics.evicted, nil)
	s.routes.table.Store(&map[string]*route{})
	for _, given := range options.Routes {
		if err := s.Handle(given); err != nil {
			return nil, err
		}
	}
	if err := s.registerMetrics(); err != nil {
		return nil, fmt.Errorf("serving: register metrics: %w", err)
	}

	s.webhooks = s.httpServer(http.HandlerFunc(s.serveHTTP))
	s.webhooks.ConnState, s.webhooks.ConnContext = s.connections.stateChanged, withConn
	s.webhooks.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: receiveBuffer}
	s.webhooks.Protocols = new(http.Protocols)
	s.webhooks.Protocols.SetHTTP1(true)
	s.webhooks.Protocols.SetHTTP2(options.HTTP2)
	s.webhooks.TLSConfig = s.tlsConfig()
	s.plain = s.httpServer(s.plainHandler())
	s.plain.ConnState, s.plain.ConnContext = s.plainConnections.stateChanged, withConn
	return s, nil
}

// tlsConfig is the TLS configuration of both ports.
func (s *Server) tlsConfig() *tls.Config {
	config, _ := s.options.tls(nil) // the options were validated
	config.GetCertificate = s.options.GetCertificate
	// kube-apiserver never resumes sessions, so tickets would be useless.
	config.SessionTicketsDisabled = true
	if s.options.ClientCertificates {
		config.ClientAuth = tls.RequestClientCert
	}
	if s.options.ConfigureTLS != nil {
		s.options.ConfigureTLS(config)
	}
	return config
}

func (s *Server) httpServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.options.ReadHeaderTimeout,
		ReadTimeout:       s.options.ReadTimeout,
		WriteTimeout:      s.options.WriteTimeout,
		IdleTimeout:       s.options.IdleTimeout,
		MaxHeaderBytes:    int(s.options.MaxHeaderBytes),
		ErrorLog:          slog.NewLogLogger(&connectionErrors{Handler: s.log.Handler(), metrics: s.metrics}, slog.LevelWarn),
	}
}

// Listen binds the addresses, so that [Server.Addr] is known before [Server.Run].
func (s *Server) Listen(ctx context.Context) error {
	if s.listener != nil {
		return errors.New("serving: the server is already listening")
	}
	var config net.ListenConfig
	address := net.JoinHostPort(s.options.BindAddress, strconv.Itoa(int(s.options.SecurePort)))
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serving: listen for webhooks: %w", err)
	}
	if address := s.options.MetricsBindAddress; s.options.ServesMetrics() {
		if s.plainListener, err = config.Listen(ctx, "tcp", address); err != nil {
			return errors.Join(fmt.Errorf("serving: listen for metrics: %w", err), listener.Close())
		}
	}
	s.listener = listener
	return nil
}

// Addr is the address webhooks are served on; nil before [Server.Listen].
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// MetricsAddr is the address of /metrics; nil before [Server.Listen] and if it is disabled.
func (s *Server) MetricsAddr() net.Addr {
	if s.plainListener == nil {
		return nil
	}
	return s.plainListener.Addr()
}

// Run listens, unless [Server.Listen] was called, and serves until ctx ends. Then it drains
// (see drain.go) and returns nil, as it does after [Server.Close]. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	if s.running.Swap(true) {
		return errors.New("serving: the server has already run: create a new one")
	}
	if s.listener == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	s.log.InfoContext(ctx, "serving webhooks", slog.String("address", s.Addr().String()))

	var group sync.WaitGroup
	failed := make(chan error, 2)
	group.Go(func() { s.health.waitForGate(s.closed) })
	group.Go(func() { s.reportOverdue(s.closed) })
	fresh := &freshListener{
		Listener: s.listener, idle: s.options.IdleTimeout, header: s.options.ReadHeaderTimeout,
		handshake: max(minHandshakeTime, s.options.ReadHeaderTimeout),
		turns:     turns.New(max(1, runtime.GOMAXPROCS(0)/2)), queues: s.connections.queues, unqueues: s.connections.unqueues,
	}
	group.Go(func() { failed <- s.webhooks.ServeTLS(fresh, "", "") })
	if s.plainListener != nil {
		group.Go(func() { failed <- s.servePlain(s.plainListener) })
	}

	var err error
	select {
	case <-ctx.Done():
		s.drain()
	case err = <-failed:
		err = fmt.Errorf("serving: %w", err)
	case <-s.closed.Done():
	}

	s.close()
	_ = s.webhooks.Close() // draining is over
	_ = s.plain.Close()
	group.Wait()
	return err
}

// connectionErrors is the log of http.Server. Failed handshakes are noise of port scans and
// probes, which any caller can cause: they are counted, and logged at debug level.
type connectionErrors struct {
	slog.Handler
	metrics *metrics
}

// Enabled passes all records to Handle, which sets their level.
func (c *connectionErrors) Enabled(context.Context, slog.Level) bool { return true }

// Handle passes the record on.
func (c *connectionErrors) Handle(ctx context.Context, record slog.Record) error {
	if strings.HasPrefix(record.Message, "http: TLS handshake error") {
		c.metrics.handshakeErrors.Inc()
		record.Level = slog.LevelDebug
	}
	if !c.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return c.Handler.Handle(ctx, record)
}
