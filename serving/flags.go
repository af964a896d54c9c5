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

// AddFlags binds the listener's addresses and limits to flags. The values they
// have now are the defaults that the help shows.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"`address` to serve webhooks on; empty for all addresses")
	flags.IntVar(&o.Port, "secure-port", o.Port,
		"`port` to serve webhooks on with TLS; 0 takes a free one")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"`host:port` to serve /metrics, /livez and /readyz on, for example 127.0.0.1:8080 for this host or pod alone; without TLS, unless --metrics-authentication says who may read; 0 switches it off")
	flags.StringVar(&o.MinTLSVersion, "tls-min-version", o.MinTLSVersion,
		"least `version` of TLS: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+"; empty for VersionTLS12")
	flags.StringSliceVar(&o.CipherSuites, "tls-cipher-suites", o.CipherSuites,
		"`names` of the cipher suites of TLS 1.2, as Kubernetes' components have them, for example TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; "+
			"TLS 1.3 has its own; empty for all that encrypt and authenticate in one")
	flags.BoolVar(&o.HTTP2, "http2", o.HTTP2,
		"offer HTTP/2 beside HTTP/1.1; kube-apiserver uses it for loopback URLs only")

	flags.DurationVar(&o.ReadHeaderTimeout, "read-header-timeout", o.ReadHeaderTimeout,
		"longest time for a TLS handshake, and for the header of a request")
	flags.DurationVar(&o.ReadTimeout, "read-timeout", o.ReadTimeout,
		"longest time to receive a whole request")
	flags.DurationVar(&o.WriteTimeout, "write-timeout", o.WriteTimeout,
		"longest time from the header of a request to the end of its answer; at least 30s")
	flags.DurationVar(&o.IdleTimeout, "idle-timeout", o.IdleTimeout,
		"how long a connection is kept without a request; above the 90s after which kube-apiserver closes it")

	flags.IntVar(&o.MaxHeaderBytes, "max-header-bytes", o.MaxHeaderBytes,
		"largest header of a request, in `bytes`")
	flags.Int64Var(&o.MaxBodyBytes, "max-body-bytes", o.MaxBodyBytes,
		"largest body of a request, in `bytes`; more is answered with 413")
	flags.Int64Var(&o.MaxBytesInFlight, "max-bytes-in-flight", o.MaxBytesInFlight,
		"most `bytes` of request bodies in memory at one time; one more cuts the body that arrives slowest, or is answered with 429; 0 means an eighth of GOMEMLIMIT, at most 64 MiB")
	flags.Int64Var(&o.MinBodyRate, "min-body-rate", o.MinBodyRate,
		"`bytes` of a body that must arrive in each second after --read-header-timeout; fewer are answered with 408; 0 for no such limit")
	flags.IntVar(&o.MaxConcurrentReviews, "max-concurrent-reviews", o.MaxConcurrentReviews,
		"most reviews at work at one time, half of them of one namespace; more queue for up to half of their timeout and are then answered with 429; 0 means 4 for each CPU, as far as GOMEMLIMIT has 16 MiB for each, but 2")
	flags.IntVar(&o.MaxWaitingReviews, "max-waiting-reviews", o.MaxWaitingReviews,
		"most reviews that queue; one more sends away the last one of the namespace that has most, with 429; 0 means 128 for each of --max-concurrent-reviews")
	flags.IntVar(&o.MaxConnections, "max-connections", o.MaxConnections,
		"most open connections; one more closes the one whose body arrives slowest, or that has waited longest for a request; 0 means one for each 256 KiB of GOMEMLIMIT, at most 4096")
	flags.IntVar(&o.MaxMetricsConnections, "max-metrics-connections", o.MaxMetricsConnections,
		"most open connections to --metrics-bind-address; 0 means a sixteenth of --max-connections, 16 to 256")

	flags.DurationVar(&o.DrainMin, "drain-min", o.DrainMin,
		"how long to go on answering after SIGTERM, even if nobody is connected")
	flags.DurationVar(&o.DrainMax, "drain-timeout", o.DrainMax,
		"how long to wait after SIGTERM until the last connection has gone")
}

// ValidateSettings reports every problem with addresses, limits and timeouts, before routes,
// checks and the certificate are known. What it accepts, [New] accepts.
func (o *Options) ValidateSettings() error {
	settings := *o
	settings.Routes, settings.Checks, settings.LiveChecks = nil, nil, nil
	settings.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	errs := []error{settings.validate()}
	if address := o.MetricsBindAddress; address != "" && address != "0" {
		if _, _, err := net.SplitHostPort(address); err != nil {
			errs = append(errs, fmt.Errorf("metrics bind address %q: write HOST:PORT or :PORT, or 0 to switch it off", address))
		}
	}
	return errors.Join(errs...)
}
