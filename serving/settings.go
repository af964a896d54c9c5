// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
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

// Settings are the addresses, limits and timeouts of a [Server]. Start from [DefaultSettings].
type Settings struct {
	// bindAddress is the address to serve webhooks on. If empty, all addresses.
	BindAddress string `json:"bindAddress,omitempty" flag:"bind-address" value:"address" group:"Addresses"`
	// securePort is the port to serve webhooks on with TLS. 0 picks a free port. Default
	// 9443.
	SecurePort int32 `json:"securePort" flag:"secure-port" value:"port" group:"Addresses" min:"0" max:"65535"`
	// metricsBindAddress is the host:port to serve /metrics, /livez and /readyz on, for
	// example 127.0.0.1:8080 for this host or pod only. Plain HTTP, unless
	// authentication.metrics is set. 0 disables it. Default :8080.
	MetricsBindAddress string `json:"metricsBindAddress" flag:"metrics-bind-address" value:"host:port" group:"Addresses"`
	// tlsMinVersion is the minimum version of TLS, by the name of the constant in
	// crypto/tls, for example VersionTLS13. If empty, VersionTLS12.
	TLSMinVersion string `json:"tlsMinVersion,omitempty" flag:"tls-min-version" value:"version"`
	// tlsCipherSuites are the names of the cipher suites for TLS 1.2, those of the constants
	// in crypto/tls, for example TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. Those of TLS 1.3 are
	// not configurable. If empty, all AEAD suites.
	TLSCipherSuites []string `json:"tlsCipherSuites,omitempty" flag:"tls-cipher-suites" value:"names"`
	// http2 enables HTTP/2 in addition to HTTP/1.1. kube-apiserver uses it for loopback
	// URLs only. Default false.
	HTTP2 bool `json:"http2" flag:"http2"`

	// readHeaderTimeout is the maximum time for the header of each request from its first
	// byte on and, if it is more than 15s, for each part of a TLS handshake: kube-apiserver
	// gives up first then. Default 5s.
	ReadHeaderTimeout time.Duration `json:"readHeaderTimeout" flag:"read-header-timeout" min:"1"`
	// readTimeout is the maximum time for reading a whole request. Default 15s.
	ReadTimeout time.Duration `json:"readTimeout" flag:"read-timeout" min:"1"`
	// writeTimeout is the maximum time from the end of the request headers to the end of the
	// response. At least 30s, the maximum timeout of a webhook. Default 30s.
	WriteTimeout time.Duration `json:"writeTimeout" flag:"write-timeout"`
	// idleTimeout is how long an idle connection is kept open. It must exceed the 90s after
	// which kube-apiserver closes idle connections. Default 130s.
	IdleTimeout time.Duration `json:"idleTimeout" flag:"idle-timeout"`

	// maxHeaderBytes is the maximum size of request headers, in bytes; net/http adds 4 KiB of
	// slack. Default 16384.
	MaxHeaderBytes int32 `json:"maxHeaderBytes" flag:"max-header-bytes" value:"bytes" min:"1"`
	// maxBodyBytes is the maximum size of a request body, in bytes; larger requests get 413.
	// Default 8388608, because the object and the old object have at most 3 MiB each.
	MaxBodyBytes int64 `json:"maxBodyBytes" flag:"max-body-bytes" value:"bytes" min:"1"`
	// maxBytesInFlight is the maximum total size of request bodies in memory, in bytes; it
	// must exceed maxBodyBytes. A quarter is reserved for bodies of at most 64 KiB. Beyond
	// it, the server drops the body that arrives slowest, or responds with 429. Default 0:
	// an eighth of GOMEMLIMIT, at least two and a half bodies and at most 64 MiB.
	MaxBytesInFlight int64 `json:"maxBytesInFlight" flag:"max-bytes-in-flight" value:"bytes"`
	// minBodyRate is the minimum transfer rate of a request body in bytes per second,
	// enforced after readHeaderTimeout; slower requests get 408. 0 disables the limit.
	// Default 65536.
	MinBodyRate int64 `json:"minBodyRate" flag:"min-body-rate" value:"bytes" min:"0"`
	// maxConcurrentReviews is the maximum number of reviews processed at the same time, at
	// most half of them for one namespace. Further reviews queue for up to half of their
	// timeout and then get 429. Default 0: 4 per CPU, as long as GOMEMLIMIT allows 16 MiB
	// for each; at least 2.
	MaxConcurrentReviews int32 `json:"maxConcurrentReviews" flag:"max-concurrent-reviews" min:"0"`
	// maxWaitingReviews is the maximum number of queued reviews. Beyond it, the newest review
	// of the namespace with the most queued reviews gets 429. Default 0: 128 times
	// maxConcurrentReviews.
	MaxWaitingReviews int32 `json:"maxWaitingReviews" flag:"max-waiting-reviews" min:"0"`
	// maxConnections is the maximum number of open connections, and of bodies arriving at the
	// same time. Beyond it, the server closes the connection whose body arrives slowest, or
	// the one that has been idle longest, from the address with the most connections.
	// Default 0: one per 256 KiB of GOMEMLIMIT, at least 64 and at most 4096.
	MaxConnections int32 `json:"maxConnections" flag:"max-connections" min:"0"`
	// maxMetricsConnections is the maximum number of open connections to metricsBindAddress.
	// Default 0: a sixteenth of maxConnections, but at least 16 and at most 256.
	MaxMetricsConnections int32 `json:"maxMetricsConnections" flag:"max-metrics-connections" min:"0"`

	// drainMin is the minimum time to keep serving after SIGTERM, even without
	// open connections: clients need that long to observe that the endpoint is gone.
	// Default 15s.
	DrainMin time.Duration `json:"drainMin" flag:"drain-min" min:"0"`
	// drainTimeout is the maximum time to wait after SIGTERM for connections to close. Active requests then get another 5s. Default 95s, because kube-apiserver
	// closes idle connections after 90s.
	DrainTimeout time.Duration `json:"drainTimeout" flag:"drain-timeout"`
}

// DefaultSettings returns the documented defaults.
func DefaultSettings() Settings {
	return Settings{
		SecurePort:         9443,
		MetricsBindAddress: ":8080",
		ReadHeaderTimeout:  5 * time.Second,
		ReadTimeout:        15 * time.Second,
		WriteTimeout:       maxTimeout,
		IdleTimeout:        130 * time.Second,
		MaxHeaderBytes:     16 << 10,
		MaxBodyBytes:       8 << 20,
		MinBodyRate:        64 << 10,
		DrainMin:           15 * time.Second,
		DrainTimeout:       95 * time.Second,
	}
}

// endsWithNumber matches an address that is not a host name.
var endsWithNumber = regexp.MustCompile(`(^|\.)[0-9]+$`)

// Validate reports every problem below a path, which may be nil.
func (s *Settings) Validate(path *field.Path) field.ErrorList {
	errs := tags.Validate(s, path)
	require := func(ok bool, name string, value any, detail string) {
		if d, is := value.(time.Duration); is {
			value = d.String()
		}
		if !ok {
			errs = append(errs, field.Invalid(path.Child(name), value, detail))
		}
	}
	require(s.BindAddress == "" || net.ParseIP(s.BindAddress) != nil || !endsWithNumber.MatchString(s.BindAddress), "bindAddress", s.BindAddress, "must be an IP address or a host name")
	if s.ServesMetrics() {
		_, _, err := net.SplitHostPort(s.MetricsBindAddress)
		require(err == nil, "metricsBindAddress", s.MetricsBindAddress, "write HOST:PORT or :PORT, or 0 to disable it")
	}
	_, problems := s.tls(path)
	errs = append(errs, problems...)
	require(s.WriteTimeout >= maxTimeout, "writeTimeout", s.WriteTimeout, "must be at least 30s, the maximum timeout of a webhook")
	require(s.IdleTimeout > apiServerIdleTimeout, "idleTimeout", s.IdleTimeout, "must be above 1m30s, when kube-apiserver closes idle connections")
	require(s.MaxBytesInFlight == 0 || s.MaxBytesInFlight > s.MaxBodyBytes, "maxBytesInFlight", s.MaxBytesInFlight, "must be above maxBodyBytes")
	require(s.DrainTimeout >= s.DrainMin, "drainTimeout", s.DrainTimeout, "must not be below drainMin, "+s.DrainMin.String())
	return errs
}

// ServesMetrics reports whether MetricsBindAddress is an address.
func (s *Settings) ServesMetrics() bool {
	return s.MetricsBindAddress != "" && s.MetricsBindAddress != "0"
}
