// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
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
	BindAddress string `json:"bindAddress,omitempty"`
	// securePort is the port to serve webhooks on with TLS. 0 picks a free port. Default
	// 9443.
	SecurePort int32 `json:"securePort"`
	// metricsBindAddress is the host:port to serve /metrics, /livez and /readyz on, for
	// example 127.0.0.1:8080 to serve this host or pod only. Empty or 0 disables it. It
	// serves plain HTTP unless readers are authenticated. Default :8080.
	MetricsBindAddress string `json:"metricsBindAddress"`
	// tlsMinVersion is the minimum version of TLS, by the name of the constant in
	// crypto/tls, for example VersionTLS13. If empty, VersionTLS12.
	TLSMinVersion string `json:"tlsMinVersion,omitempty"`
	// tlsCipherSuites are the cipher suites for TLS 1.2, by the names of the constants in
	// crypto/tls. Those of TLS 1.3 are not configurable. If empty, all AEAD suites.
	TLSCipherSuites []string `json:"tlsCipherSuites,omitempty"`
	// http2 enables HTTP/2 in addition to HTTP/1.1. kube-apiserver uses it for loopback
	// URLs only. Default false.
	HTTP2 bool `json:"http2"`

	// readHeaderTimeout limits the time for the header of each request from its first byte
	// on and, if it is more than 15s, for each part of a TLS handshake: kube-apiserver gives
	// up first then. Default 5s.
	ReadHeaderTimeout time.Duration `json:"readHeaderTimeout"`
	// readTimeout limits the time for reading a whole request. Default 15s.
	ReadTimeout time.Duration `json:"readTimeout"`
	// writeTimeout limits the time from the end of the request headers to the end of the
	// response. At least 30s, the maximum timeout of a webhook. Default 30s.
	WriteTimeout time.Duration `json:"writeTimeout"`
	// idleTimeout is how long an idle connection is kept open. It must exceed the 90s after
	// which kube-apiserver closes idle connections. Default 130s.
	IdleTimeout time.Duration `json:"idleTimeout"`

	// maxHeaderBytes limits the size of request headers; net/http adds 4 KiB of slack.
	// Default 16384.
	MaxHeaderBytes int32 `json:"maxHeaderBytes"`
	// maxBodyBytes limits the size of a request body; larger requests get 413. Default
	// 8388608: enough for the object and the old object, at most 3 MiB each.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
	// maxBytesInFlight limits the total size of request bodies in memory; it must exceed
	// maxBodyBytes. A quarter is reserved for bodies of at most 64 KiB. Beyond it, the
	// server drops the body that arrives slowest, or responds with 429. Default 0: an
	// eighth of GOMEMLIMIT, at least two and a half bodies and at most 64 MiB.
	MaxBytesInFlight int64 `json:"maxBytesInFlight"`
	// minBodyRate is the minimum transfer rate of a request body in bytes per second,
	// enforced after readHeaderTimeout; slower requests get 408. 0 disables the limit.
	// Default 65536.
	MinBodyRate int64 `json:"minBodyRate"`
	// maxConcurrentReviews limits the reviews processed at the same time, at most half of
	// them for one namespace. Further reviews queue for up to half of their timeout and
	// then get 429. Default 0: 4 per CPU, as long as GOMEMLIMIT allows 16 MiB for each; at
	// least 2.
	MaxConcurrentReviews int32 `json:"maxConcurrentReviews"`
	// maxWaitingReviews limits the reviews in the queue. Beyond it, the newest review of
	// the namespace with the most queued reviews gets 429. Default 0: 128 times
	// maxConcurrentReviews.
	MaxWaitingReviews int32 `json:"maxWaitingReviews"`
	// maxConnections limits the open connections, and the bodies arriving at the same time.
	// Beyond it, the server closes the connection whose body arrives slowest, or the one
	// that has been idle longest, from the address with the most connections. Default 0:
	// one per 256 KiB of GOMEMLIMIT, at least 64 and at most 4096.
	MaxConnections int32 `json:"maxConnections"`
	// maxMetricsConnections limits the open connections to metricsBindAddress. Default 0: a
	// sixteenth of maxConnections, but at least 16 and at most 256.
	MaxMetricsConnections int32 `json:"maxMetricsConnections"`

	// drainMin is the minimum time the server keeps serving after SIGTERM, even without
	// open connections: clients need that long to observe that the endpoint is gone.
	// Default 15s.
	DrainMin time.Duration `json:"drainMin"`
	// drainTimeout is the maximum time the server waits after SIGTERM for connections to
	// close. Active requests then get another 5s. Default 95s, because kube-apiserver
	// closes idle connections after 90s.
	DrainTimeout time.Duration `json:"drainTimeout"`
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
	var errs field.ErrorList
	require := func(ok bool, name string, value any, detail string) {
		if d, is := value.(time.Duration); is {
			value = d.String()
		}
		if !ok {
			errs = append(errs, field.Invalid(path.Child(name), value, detail))
		}
	}
	require(s.BindAddress == "" || net.ParseIP(s.BindAddress) != nil || !endsWithNumber.MatchString(s.BindAddress), "bindAddress", s.BindAddress, "must be an IP address or a host name")
	require(s.SecurePort >= 0 && s.SecurePort <= 65535, "securePort", s.SecurePort, "must be between 0 and 65535")
	if s.ServesMetrics() {
		_, _, err := net.SplitHostPort(s.MetricsBindAddress)
		require(err == nil, "metricsBindAddress", s.MetricsBindAddress, "write HOST:PORT or :PORT, or 0 to disable it")
	}
	_, problems := s.tls(path)
	errs = append(errs, problems...)
	require(s.ReadHeaderTimeout > 0, "readHeaderTimeout", s.ReadHeaderTimeout, "must be positive")
	require(s.ReadTimeout > 0, "readTimeout", s.ReadTimeout, "must be positive")
	require(s.WriteTimeout >= maxTimeout, "writeTimeout", s.WriteTimeout, "must be at least 30s, the maximum timeout of a webhook")
	require(s.IdleTimeout > apiServerIdleTimeout, "idleTimeout", s.IdleTimeout, "must be above 1m30s, when kube-apiserver closes idle connections")
	require(s.MaxHeaderBytes > 0, "maxHeaderBytes", s.MaxHeaderBytes, "must be positive")
	require(s.MaxBodyBytes > 0, "maxBodyBytes", s.MaxBodyBytes, "must be positive")
	require(s.MaxBytesInFlight == 0 || s.MaxBytesInFlight > s.MaxBodyBytes, "maxBytesInFlight", s.MaxBytesInFlight, "must be above maxBodyBytes")
	require(s.MinBodyRate >= 0, "minBodyRate", s.MinBodyRate, "must not be negative")
	require(s.MaxConcurrentReviews >= 0, "maxConcurrentReviews", s.MaxConcurrentReviews, "must not be negative")
	require(s.MaxWaitingReviews >= 0, "maxWaitingReviews", s.MaxWaitingReviews, "must not be negative")
	require(s.MaxConnections >= 0, "maxConnections", s.MaxConnections, "must not be negative")
	require(s.MaxMetricsConnections >= 0, "maxMetricsConnections", s.MaxMetricsConnections, "must not be negative")
	require(s.DrainMin >= 0, "drainMin", s.DrainMin, "must not be negative")
	require(s.DrainTimeout >= s.DrainMin, "drainTimeout", s.DrainTimeout, "must not be below drainMin, "+s.DrainMin.String())
	return errs
}

// ServesMetrics reports whether MetricsBindAddress is an address.
func (s *Settings) ServesMetrics() bool {
	return s.MetricsBindAddress != "" && s.MetricsBindAddress != "0"
}
