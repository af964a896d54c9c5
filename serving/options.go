// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

const (
	// apiServerIdleTimeout is how long kube-apiserver keeps an idle connection to a
	// webhook. Its client never retries a POST on a closed connection, so the server must
	// wait longer.
	apiServerIdleTimeout = 90 * time.Second

	// maxTimeout is the maximum timeoutSeconds of a webhook, and the API server's
	// timeout for a conversion. It is used if ?timeout= is missing.
	maxTimeout = 30 * time.Second
)

// Check is a condition of /readyz or /livez.
type Check struct {
	// Name identifies the check in /readyz.
	Name string

	// Ready returns nil if the condition holds, and otherwise the reason, which /readyz
	// shows to any caller. It is called from many goroutines and must be fast.
	Ready func() error

	// Detail returns what /readyz?verbose shows beside the name while the condition holds;
	// it may be empty. Nil shows nothing. It is called like Ready.
	Detail func() string

	// Gate blocks the routes until the check and all other Gate checks have passed once:
	// until then they respond 503 with Retry-After: 1, which makes the API server retry.
	// See [Server.Recheck]. An open gate stays open: a cache that was filled once is served
	// from, even if it is stale.
	Gate bool
}

// Registry registers metrics and gathers them for /metrics, e.g. a [prometheus.Registry].
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Options configure a [Server]. Start from [DefaultOptions]; [New] rejects unset limits.
type Options struct {
	// BindAddress is the address to listen on. Empty means all addresses.
	BindAddress string
	// Port is the TCP port for TLS. 0 picks a free port. Default 9443.
	Port int
	// MetricsBindAddress is the host:port for /metrics, /livez and /readyz, with TLS if
	// AuthenticateMetrics is set. Empty or "0" disables them. Default ":8080".
	MetricsBindAddress string
	// MinTLSVersion is the minimum version of TLS, by the name of the constant in
	// crypto/tls, for example "VersionTLS13", as for --tls-min-version of Kubernetes'
	// components. Default TLS 1.2.
	MinTLSVersion string
	// CipherSuites are the cipher suites for TLS 1.2, by the names of constants in
	// crypto/tls, as for --tls-cipher-suites of Kubernetes' components. Those of TLS 1.3
	// are not configurable. Empty means all AEAD suites.
	CipherSuites []string
	// HTTP2 enables HTTP/2 in addition to HTTP/1.1. kube-apiserver always uses HTTP/1.1 for
	// a Service, which is also faster. Default false.
	HTTP2 bool

	// ReadHeaderTimeout limits the time for the header of each request from its first byte
	// on. It is also the limit for each part of a TLS handshake, if it is more than 15 s:
	// kube-apiserver gives up first then. Default 5 s.
	ReadHeaderTimeout time.Duration
	// ReadTimeout limits the time for a whole request, header and body. Default 15 s.
	ReadTimeout time.Duration
	// WriteTimeout limits the time from the end of the request header to the end of the
	// response, including the handler. It must be at least 30 s, the maximum timeout of a
	// webhook. Default 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may be idle, including before its first request.
	// It must exceed the 90 s after which kube-apiserver closes idle connections. Default
	// 130 s.
	IdleTimeout time.Duration

	// MaxHeaderBytes limits the size of request headers; net/http adds 4 KiB of slack.
	// Default 16 KiB.
	MaxHeaderBytes int
	// MaxBodyBytes limits the size of a request body. Default 8 MiB: enough for the object
	// and the old object, at most 3 MiB each.
	MaxBodyBytes int64
	// MaxBytesInFlight limits the total size of request bodies in memory; it must exceed
	// MaxBodyBytes. A quarter is reserved for bodies of at most 64 KiB; beyond the limit,
	// the body that arrives slowest is dropped. Default 0: an eighth of the memory limit of
	// the Go runtime (GOMEMLIMIT), at least two and a half bodies and at most 64 MiB.
	MaxBytesInFlight int64
	// MinBodyRate is the minimum transfer rate of a body in bytes per second, enforced
	// after ReadHeaderTimeout. 0 disables the limit. Default 64 KiB.
	MinBodyRate int64
	// MaxConcurrentReviews limits the handlers running at the same time, at most half of
	// them for one flow (see [Route]). Further requests queue for at most half of their
	// time. Default 0: four per CPU that Go uses (GOMAXPROCS), as long as the memory limit
	// of the Go runtime (GOMEMLIMIT) allows [ReviewBytes] for each; at least 2.
	MaxConcurrentReviews int
	// MaxWaitingReviews limits the queued requests. Beyond it, the newest request of the
	// flow with the most queued requests is refused. Default 0: 128 times the limit of
	// concurrent reviews.
	MaxWaitingReviews int
	// MaxConnections limits the open connections, and the bodies arriving at the same time.
	// Beyond it, the connection whose body arrives slowest is closed, or the one that has
	// been idle longest, from the address with the most connections. Default 0: as many as
	// fit in a quarter of the memory limit of the Go runtime (GOMEMLIMIT) with 64 KiB each,
	// but at least 64 and at most 4096.
	MaxConnections int
	// MaxMetricsConnections limits the open connections to MetricsBindAddress, like
	// MaxConnections. Default 0: a sixteenth of MaxConnections, but at least 16 and at most
	// 256.
	MaxMetricsConnections int

	// DrainMin is the minimum time to keep serving after the context of Run has ended, even
	// without connections: clients need that long to observe that the endpoint is gone.
	// Default 15 s.
	DrainMin time.Duration
	// DrainMax is the maximum time to wait for connections to close after the context of
	// Run has ended. Active requests then get another 5 s. Default 95 s, because
	// kube-apiserver closes idle connections after 90 s.
	DrainMax time.Duration

	// Routes are the served paths; [Server.Handle] adds more. /livez and /readyz are
	// reserved.
	Routes []Route
	// Others returns the handler of a path without a route, for any method and within the
	// same limits. A nil Others or handler means 404. In metrics all of these paths are
	// "other".
	Others func(*http.Request) http.Handler
	// Checks make up /readyz, in this order.
	Checks []Check
	// LiveChecks make up /livez, in this order. They should only fail if a restart of the
	// process helps. Gate and Detail are ignored.
	LiveChecks []Check

	// GetCertificate returns the certificate for a handshake. Required.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ConfigureTLS changes other TLS parameters, such as curves. It overrides MinTLSVersion
	// and CipherSuites. It is called once, by [New]. May be nil.
	ConfigureTLS func(*tls.Config)
	// CertificateNotAfter returns when the certificate expires, for a metric, or the zero
	// time if there is none. Nil disables the metric.
	CertificateNotAfter func() time.Time

	// Authenticate decides whether a caller may call: nil permits the call,
	// [ErrUnauthenticated] becomes 401, [ErrForbidden] 403, both without showing the reason
	// to the caller, and any other error 503 with Retry-After. It is called for each call
	// of a route that is not Anonymous, before the body is read; the request's context ends
	// at the caller's deadline minus a margin. A nil Authenticate accepts any caller.
	Authenticate func(*http.Request) error
	// ClientCertificates requests a client certificate, but does not require one. The
	// handshake only verifies that the caller has its key; Authenticate must verify who
	// signed it: see PeerCertificates of the request's TLS.
	ClientCertificates bool
	// AuthenticateMetrics decides who may read /metrics, like Authenticate. The metrics
	// port then serves TLS with the certificate of the webhooks, because readers send a
	// token. /livez and /readyz need no authentication. Nil accepts any reader.
	AuthenticateMetrics func(*http.Request) error
	// MetricsRoutes are further paths on MetricsBindAddress, with their handlers.
	// AuthenticateMetrics, which they require, decides who may call them.
	MetricsRoutes map[string]http.Handler
	// PathSegments makes the paths private: a route is served at its path followed by a
	// slash and one of the path's current segments; other paths get 404. It is called for
	// each call. Nil means that paths are as in Routes.
	PathSegments func(path string) []string
	// PlainPaths reports whether paths without a segment are served too if PathSegments is
	// set, as long as the API server still calls them. It is called for each call. Nil
	// means no.
	PlainPaths func() bool

	// Tracer starts a span for each permitted call, within the trace of the caller (W3C
	// Trace Context). Handlers get it with trace.SpanFromContext. Nil disables tracing.
	Tracer trace.Tracer

	// Registry registers the metrics. Nil means a registry of this server's own.
	Registry Registry
	// Logger defaults to [slog.Default].
	Logger *slog.Logger
}

// DefaultOptions returns the documented default of every limit. Callers add Routes, Checks
// and GetCertificate.
func DefaultOptions() Options {
	return Options{
		Port:               9443,
		MetricsBindAddress: ":8080",
		ReadHeaderTimeout:  5 * time.Second,
		ReadTimeout:        15 * time.Second,
		WriteTimeout:       maxTimeout,
		IdleTimeout:        130 * time.Second,
		MaxHeaderBytes:     16 << 10,
		MaxBodyBytes:       8 << 20,
		MinBodyRate:        64 << 10,
		DrainMin:           15 * time.Second,
		DrainMax:           95 * time.Second,
	}
}

// validate reports all problems.
func (o *Options) validate() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}

	require(o.Port >= 0 && o.Port <= 65535, "port %d is not between 0 and 65535", o.Port)
	require(o.GetCertificate != nil, "GetCertificate is required: set the source of the serving certificate")

	_, err := o.tls()
	errs = append(errs, err)

	require(o.ReadHeaderTimeout > 0, "read header timeout %s must be positive", o.ReadHeaderTimeout)
	require(o.ReadTimeout > 0, "read timeout %s must be positive", o.ReadTimeout)
	require(o.WriteTimeout >= maxTimeout, "write timeout %s must be at least %s, the maximum timeout of a webhook",
		o.WriteTimeout, maxTimeout)
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

	require(o.DrainMin >= 0, "DrainMin %s must not be negative", o.DrainMin)
	require(o.DrainMax >= o.DrainMin, "DrainMax %s must not be less than DrainMin %s", o.DrainMax, o.DrainMin)

	paths := map[string]bool{}
	for _, route := range o.Routes {
		errs = append(errs, route.validate())
		require(!paths[route.Path], "path %q is already in use", route.Path)
		paths[route.Path] = true
	}
	for path := range o.MetricsRoutes {
		require(o.AuthenticateMetrics != nil, "path %q on the metrics port requires AuthenticateMetrics", path)
		require(strings.HasPrefix(path, "/") && !strings.ContainsAny(path, " \t{}"), "path %q on the metrics port must start with a slash and contain no space or brace", path)
		require(path != metricsPath && path != livezPath && path != readyzPath, "path %q on the metrics port is already in use", path)
	}
	for _, checks := range [][]Check{o.Checks, o.LiveChecks} {
		names := map[string]bool{}
		for _, check := range checks {
			require(check.Name != "", "a check has no name")
			require(check.Ready != nil, "check %q has no func", check.Name)
			require(!names[check.Name], "duplicate check %q", check.Name)
			names[check.Name] = true
		}
	}
	return errors.Join(errs...)
}
