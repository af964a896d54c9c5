// SPDX-License-Identifier: Apache-2.0

package serving

import "github.com/spf13/pflag"

// AddFlags binds the listener's addresses and limits to flags. The values they
// have now are the defaults that the help shows.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"IP address to serve webhooks on; empty for all addresses.")
	flags.IntVar(&o.Port, "secure-port", o.Port,
		"Port to serve webhooks on with TLS; 0 takes a free one.")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		`Address (host:port) to serve /metrics, /livez and /readyz on without TLS; "0" switches it off.`)
	flags.BoolVar(&o.HTTP2, "http2", o.HTTP2,
		"Offer HTTP/2 beside HTTP/1.1. kube-apiserver uses it for loopback URLs only.")

	flags.DurationVar(&o.ReadHeaderTimeout, "read-header-timeout", o.ReadHeaderTimeout,
		"Longest time for a TLS handshake, and for the header of a request.")
	flags.DurationVar(&o.ReadTimeout, "read-timeout", o.ReadTimeout,
		"Longest time to receive a whole request.")
	flags.DurationVar(&o.WriteTimeout, "write-timeout", o.WriteTimeout,
		"Longest time from the header of a request to the end of its answer; at least 30s.")
	flags.DurationVar(&o.IdleTimeout, "idle-timeout", o.IdleTimeout,
		"How long a connection is kept without a request; above the 90s after which kube-apiserver closes it.")

	flags.IntVar(&o.MaxHeaderBytes, "max-header-bytes", o.MaxHeaderBytes,
		"Largest header of a request.")
	flags.Int64Var(&o.MaxBodyBytes, "max-body-bytes", o.MaxBodyBytes,
		"Largest body of a request; more is answered with 413.")
	flags.Int64Var(&o.MaxBytesInFlight, "max-bytes-in-flight", o.MaxBytesInFlight,
		"Most bytes of request bodies in memory at one time; more is answered with 429.")
	flags.IntVar(&o.MaxConcurrentReviews, "max-concurrent-reviews", o.MaxConcurrentReviews,
		"Most reviews at work at one time. More queue for up to half of their timeout and are then answered with 429. 0 means 4 for each CPU.")
	flags.IntVar(&o.MaxConnections, "max-connections", o.MaxConnections,
		"Most open connections; one more closes the one that has waited longest for a request.")

	flags.DurationVar(&o.DrainMin, "drain-min", o.DrainMin,
		"How long to go on answering after SIGTERM, even if nobody is connected.")
	flags.DurationVar(&o.DrainMax, "drain-max", o.DrainMax,
		"How long to wait after SIGTERM until the last connection has gone.")
}
