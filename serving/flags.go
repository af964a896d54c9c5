// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// AddFlags binds the listener's addresses and limits to flags. Their current values are the
// defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"`address` to serve webhooks on; empty for all addresses")
	flags.IntVar(&o.Port, "secure-port", o.Port,
		"`port` to serve webhooks on with TLS; 0 picks a free port")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"`host:port` to serve /metrics, /livez and /readyz on, for example 127.0.0.1:8080 for this host or pod only; plain HTTP unless --metrics-authentication is set; 0 disables it")
	flags.StringVar(&o.MinTLSVersion, "tls-min-version", o.MinTLSVersion,
		"minimum `version` of TLS: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+"; defaults to VersionTLS12")
	flags.StringSliceVar(&o.CipherSuites, "tls-cipher-suites", o.CipherSuites,
		"`names` of the cipher suites for TLS 1.2, as for Kubernetes' components, for example TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; "+
			"TLS 1.3 suites are not configurable; defaults to all AEAD suites")
	flags.BoolVar(&o.HTTP2, "http2", o.HTTP2,
		"enable HTTP/2 in addition to HTTP/1.1; kube-apiserver uses it for loopback URLs only")

	flags.DurationVar(&o.ReadHeaderTimeout, "read-header-timeout", o.ReadHeaderTimeout,
		"maximum time for reading request headers and, if it is more than 15s, for a TLS handshake")
	flags.DurationVar(&o.ReadTimeout, "read-timeout", o.ReadTimeout,
		"maximum time for reading a whole request")
	flags.DurationVar(&o.WriteTimeout, "write-timeout", o.WriteTimeout,
		"maximum time from the end of the request headers to the end of the response; at least 30s")
	flags.DurationVar(&o.IdleTimeout, "idle-timeout", o.IdleTimeout,
		"how long an idle connection is kept open; it must exceed the 90s after which kube-apiserver closes idle connections")

	flags.IntVar(&o.MaxHeaderBytes, "max-header-bytes", o.MaxHeaderBytes,
		"maximum size of request headers, in `bytes`")
	flags.Int64Var(&o.MaxBodyBytes, "max-body-bytes", o.MaxBodyBytes,
		"maximum size of a request body, in `bytes`; larger requests get 413")
	flags.Int64Var(&o.MaxBytesInFlight, "max-bytes-in-flight", o.MaxBytesInFlight,
		"maximum total size of request bodies in memory, in `bytes`; beyond it, the server drops the body that arrives slowest, or responds with 429; 0 means an eighth of GOMEMLIMIT, at most 64 MiB")
	flags.Int64Var(&o.MinBodyRate, "min-body-rate", o.MinBodyRate,
		"minimum transfer rate of a request body in `bytes` per second, enforced after --read-header-timeout; slower requests get 408; 0 disables the limit")
	flags.IntVar(&o.MaxConcurrentReviews, "max-concurrent-reviews", o.MaxConcurrentReviews,
		"maximum number of reviews processed at the same time, at most half of them for one namespace; further reviews queue for up to half of their timeout and then get 429; 0 means 4 per CPU, as long as GOMEMLIMIT allows 16 MiB for each; at least 2")
	flags.IntVar(&o.MaxWaitingReviews, "max-waiting-reviews", o.MaxWaitingReviews,
		"maximum number of queued reviews; beyond it, the newest review of the namespace with the most queued reviews gets 429; 0 means 128 times --max-concurrent-reviews")
	flags.IntVar(&o.MaxConnections, "max-connections", o.MaxConnections,
		"maximum number of open connections; beyond it, the server closes the connection whose body arrives slowest, or the one that has been idle longest; 0 means one per 256 KiB of GOMEMLIMIT, at most 4096")
	flags.IntVar(&o.MaxMetricsConnections, "max-metrics-connections", o.MaxMetricsConnections,
		"maximum number of open connections to --metrics-bind-address; 0 means a sixteenth of --max-connections, but at least 16 and at most 256")

	flags.DurationVar(&o.DrainMin, "drain-min", o.DrainMin,
		"minimum time to keep serving after SIGTERM, even without open connections")
	flags.DurationVar(&o.DrainMax, "drain-timeout", o.DrainMax,
		"maximum time to wait after SIGTERM for connections to close")
}

// ValidateSettings reports every problem with addresses, limits and timeouts, without
// routes, checks and certificate. [New] accepts what it accepts.
func (o *Options) ValidateSettings() error {
	settings := *o
	settings.Routes, settings.MetricsRoutes, settings.Checks, settings.LiveChecks = nil, nil, nil, nil
	settings.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	errs := []error{settings.validate()}
	if address := o.MetricsBindAddress; address != "" && address != "0" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			errs = append(errs, fmt.Errorf("metrics bind address %q: must be HOST:PORT or :PORT, or 0 to disable it", address))
		}
	}
	return errors.Join(errs...)
}
