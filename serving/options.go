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
	Settings `json:",inline"`

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
	// ConfigureTLS changes other TLS parameters, such as curves. It overrides TLSMinVersion
	// and TLSCipherSuites. It is called once, by [New]. May be nil.
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

// DefaultOptions returns options with [DefaultSettings]. Callers add Routes, Checks and
// GetCertificate.
func DefaultOptions() Options { return Options{Settings: DefaultSettings()} }

// validate reports all problems.
func (o *Options) validate() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for _, problem := range o.Settings.Validate(nil) {
		errs = append(errs, problem)
	}
	require(o.GetCertificate != nil, "GetCertificate is required: set the source of the serving certificate")

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
