// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

const (
	// apiServerIdleTimeout is how long kube-apiserver keeps an idle connection to
	// a webhook. Its client never repeats a POST that met a closed connection, so
	// the server must be the one that waits longer.
	apiServerIdleTimeout = 90 * time.Second

	// longestTimeout is the largest timeoutSeconds of a webhook, and what the API
	// server allows a conversion. It stands in where ?timeout= is missing.
	longestTimeout = 30 * time.Second
)

// Check is one condition of readiness.
type Check struct {
	// Name is shown by /readyz.
	Name string

	// Ready returns nil if the condition holds, otherwise the reason, which
	// /readyz shows to anybody who asks. It is called from many goroutines and
	// must be fast.
	Ready func() error

	// Detail is what /readyz?verbose shows beside the name while the condition holds; empty
	// for nothing. Nil means nothing. It is called as Ready is.
	Detail func() string

	// Gate holds back the routes until the check has passed once, together with
	// all other Gate checks: they answer 503 with Retry-After: 1, which makes the
	// API server try again. See [Server.Recheck]. A gate that has opened stays open: a
	// cache that was filled once is served from, however old.
	Gate bool
}

// Registry is where the metrics are registered and what /metrics shows, e.g. a
// [prometheus.Registry].
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Options says what is served, and within which limits. Start from
// [DefaultOptions]; [New] refuses limits that are not set.
type Options struct {
	// BindAddress is the address to listen on; empty means all addresses.
	BindAddress string
	// Port is the TCP port for TLS; 0 takes a free one. Default 9443.
	Port int
	// MetricsBindAddress is host:port for /metrics, /livez and /readyz, with TLS if
	// AuthenticateMetrics says who may read them. Empty or "0" switches them off. Default
	// ":8080".
	MetricsBindAddress string
	// MinTLSVersion is the least version of TLS, by the name of the constant of crypto/tls, for
	// example "VersionTLS13", as for --tls-min-version of Kubernetes' components. Default, and
	// empty, TLS 1.2.
	MinTLSVersion string
	// CipherSuites are those of TLS 1.2, by the names of constants of crypto/tls, as for
	// --tls-cipher-suites of Kubernetes' components; those of TLS 1.3 cannot be chosen. Empty
	// means all that encrypt and authenticate in one.
	CipherSuites []string
	// HTTP2 offers HTTP/2 beside HTTP/1.1. kube-apiserver speaks HTTP/1.1 to a
	// Service in any case, where it is also the faster one. Default false.
	HTTP2 bool

	// ReadHeaderTimeout bounds the TLS handshake and then the header of each
	// request, from its first byte on. Default 5 s.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds a whole request, header and body. Default 15 s.
	ReadTimeout time.Duration
	// WriteTimeout bounds the time from the header of the request to the end of
	// the answer, the handler's work included; so it must be at least 30 s, the
	// longest timeout of a webhook. Default 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection is kept open without a request, the
	// first one included. It must exceed the 90 s after which kube-apiserver closes it. Default 130 s.
	IdleTimeout time.Duration

	// MaxHeaderBytes bounds the header of a request; net/http adds 4 KiB of
	// slack. Default 16 KiB.
	MaxHeaderBytes int
	// MaxBodyBytes bounds the body of a request. Default 8 MiB: room for the
	// object and the old object, 3 MiB each at most.
	MaxBodyBytes int64
	// MaxBytesInFlight bounds the bodies held in memory at one time, over all
	// requests; it must exceed MaxBodyBytes. A quarter is kept for bodies of at most
	// 64 KiB; where there is no room, the body that arrives slowest is cut. Default 0: an
	// eighth of the memory limit of the Go runtime (GOMEMLIMIT), at least two and a half
	// bodies and at most 64 MiB.
	MaxBytesInFlight int64
	// MinBodyRate is how many bytes of a body must arrive in each second after
	// ReadHeaderTimeout; who is slower is cut off. Default 64 KiB; 0 for no such limit.
	MinBodyRate int64
	// MaxConcurrentReviews bounds the handlers at work at one time. One flow (see
	// [Route]) has at most half of them. Requests beyond it queue for at most half of
	// their time. Default 0: four for each CPU that Go uses (GOMAXPROCS), as far as all can
	// have [ReviewBytes] of the memory limit of the Go runtime (GOMEMLIMIT), but 2.
	MaxConcurrentReviews int
	// MaxWaitingReviews bounds the requests that queue. One more sends away the last
	// one of the flow that has most. Default 0: 128 for each that may be at work.
	MaxWaitingReviews int
	// MaxConnections bounds the open connections, and the bodies that arrive at one time.
	// One more closes the connection whose body arrives slowest, or that has waited longest
	// for a request, from the address that has most. Default 0: a quarter of the memory
	// limit of the Go runtime (GOMEMLIMIT), 64 KiB each, but 64 to 4096.
	MaxConnections int
	// MaxMetricsConnections bounds the open connections to MetricsBindAddress, as
	// MaxConnections does. Default 0: a sixteenth of MaxConnections, but 16 to 256.
	MaxMetricsConnections int

	// DrainMin is how long requests are answered after the context of Run has
	// ended, even if nobody is connected: it takes that long until everybody has
	// seen that the endpoint is gone. Default 15 s.
	DrainMin time.Duration
	// DrainMax is how long connections are waited for after the context of Run
	// has ended. Requests at work then have another 5 s. Default 95 s: idle
	// connections of kube-apiserver are gone after 90 s.
	DrainMax time.Duration

	// Routes are the paths that are served; [Server.Handle] adds more. /livez and
	// /readyz are taken.
	Routes []Route
	// Others returns who answers a path that no route has, by any method and within the same
	// limits, or nil for 404. Nil means 404. In metrics all of them are one path, "other".
	Others func(*http.Request) http.Handler
	// Checks make up /readyz, in this order.
	Checks []Check
	// LiveChecks make up /livez, in this order: what a restart of the process mends. Gate and
	// Detail say nothing there.
	LiveChecks []Check

	// GetCertificate returns the certificate for a handshake. Required.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ConfigureTLS changes what else is agreed on in a handshake, curves for example. What it
	// sets overrides MinTLSVersion and CipherSuites. It is called once, by [New]. Nil changes
	// nothing.
	ConfigureTLS func(*tls.Config)
	// CertificateNotAfter returns when the certificate expires, for a metric;
	// the zero time if there is none. Nil leaves the metric out.
	CertificateNotAfter func() time.Time

	// Authenticate says who may call: nil lets the call pass, [ErrUnauthenticated]
	// becomes 401, [ErrForbidden] 403, both without a reason that the caller sees, and
	// any other error 503 with Retry-After. It is asked for each call of a route that
	// is not Anonymous, before the body is read; the request's context ends at the
	// caller's deadline less a margin. Nil lets everybody call.
	Authenticate func(*http.Request) error
	// ClientCertificates asks callers for a client certificate, which they need not
	// have. That it is theirs is checked in the handshake, who has signed it is for
	// Authenticate to check: see PeerCertificates of the request's TLS.
	ClientCertificates bool
	// AuthenticateMetrics says who may read /metrics, as Authenticate does who may call.
	// The port speaks TLS then, with the certificate of the webhooks: who asks shows a
	// token. /livez and /readyz stay open. Nil lets everybody read.
	AuthenticateMetrics func(*http.Request) error
	// PathSegments makes the paths private: a call is answered only if a slash and one
	// of the segments that the route's path has at the time follow it, and as 404
	// otherwise. It is called for each call. Nil means that paths are as in Routes.
	PathSegments func(path string) []string
	// PlainPaths says, with PathSegments, whether the paths themselves are answered too,
	// as while the API server still calls them. It is called for each call. Nil means no.
	PlainPaths func() bool

	// Tracer makes a span of each call that may be made, within the trace of the caller
	// (W3C Trace Context). Handlers find it by trace.SpanFromContext. Nil makes none.
	Tracer trace.Tracer

	// Registry takes the metrics. Nil means one of this server's own.
	Registry Registry
	// Logger takes what is worth knowing. Nil means [slog.Default].
	Logger *slog.Logger
}

// DefaultOptions returns the documented default of every limit. Routes, Checks
// and GetCertificate are for the caller to add.
func DefaultOptions() Options {
	return Options{
		Port:               9443,
		MetricsBindAddress: ":8080",
		ReadHeaderTimeout:  5 * time.Second,
		ReadTimeout:        15 * time.Second,
		WriteTimeout:       longestTimeout,
		IdleTimeout:        130 * time.Second,
		MaxHeaderBytes:     16 << 10,
		MaxBodyBytes:       8 << 20,
		MinBodyRate:        64 << 10,
		DrainMin:           15 * time.Second,
		DrainMax:           95 * time.Second,
	}
}

// validate reports all problems at once.
func (o *Options) validate() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}

	require(o.Port >= 0 && o.Port <= 65535, "port %d is not between 0 and 65535", o.Port)
	require(o.GetCertificate != nil, "GetCertificate is required: say where the serving certificate comes from")

	_, err := o.tls()
	errs = append(errs, err)

	require(o.ReadHeaderTimeout > 0, "read header timeout %s must be positive", o.ReadHeaderTimeout)
	require(o.ReadTimeout > 0, "read timeout %s must be positive", o.ReadTimeout)
	require(o.WriteTimeout >= longestTimeout, "write timeout %s must be at least %s, the longest timeout of a webhook",
		o.WriteTimeout, longestTimeout)
	require(o.IdleTimeout > apiServerIdleTimeout, "idle timeout %s must be above %s, when kube-apiserver closes idle connections",
		o.IdleTimeout, apiServerIdleTimeout)

	require(o.MaxHeaderBytes > 0, "header limit %d must be positive", o.MaxHeaderBytes)
	require(o.MaxBodyBytes > 0, "body limit %d must be positive", o.MaxBodyBytes)
	require(o.MaxBytesInFlight == 0 || o.MaxBytesInFlight > o.MaxBodyBytes, "limit of %d bytes in flight must be above the body limit of %d",
		o.MaxBytesInFlight, o.MaxBodyBytes)
	require(o.MinBodyRate >= 0, "body rate %d must not be negative", o.MinBodyRate)
	require(o.MaxConcurrentReviews >= 0, "limit of %d concurrent reviews must not be negative", o.MaxConcurrentReviews)
	require(o.MaxWaitingReviews >= 0, "limit of %d waiting reviews must not be negative", o.MaxWaitingReviews)
	require(o.MaxConnections >= 0, "connection limit %d must not be negative", o.MaxConnections)
	require(o.MaxMetricsConnections >= 0, "metrics connection limit %d must not be negative", o.MaxMetricsConnections)

	require(o.DrainMin >= 0, "shortest drain %s must not be negative", o.DrainMin)
	require(o.DrainMax >= o.DrainMin, "longest drain %s must not be below the shortest, %s", o.DrainMax, o.DrainMin)

	paths := map[string]bool{}
	for _, route := range o.Routes {
		errs = append(errs, route.validate())
		require(!paths[route.Path], "path %q is taken twice", route.Path)
		paths[route.Path] = true
	}
	for _, checks := range [][]Check{o.Checks, o.LiveChecks} {
		names := map[string]bool{}
		for _, check := range checks {
			require(check.Name != "", "a check has no name")
			require(check.Ready != nil, "check %q has no func", check.Name)
			require(!names[check.Name], "check %q is there twice", check.Name)
			names[check.Name] = true
		}
	}
	return errors.Join(errs...)
}
