// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many may read /metrics at one time: as many as Prometheus has replicas,
// as a rule. It is dear to gather them.
const maxScrapes = 2

// plainHandler answers what is no webhook: metrics, and the probes.
func (s *Server) plainHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(metricsPath, s.guardMetrics(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})))
	mux.HandleFunc(livezPath, s.health.livez)
	mux.HandleFunc(readyzPath, s.health.readyz)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Nobody reads it, and nobody shall wait for it.
			w.Header().Set("Connection", "close")
			defer s.plainConnections.waitsFor(r.Context())
		}
		mux.ServeHTTP(w, r)
	})
}

// guardMetrics has who may not read the metrics refused, if anybody may not.
func (s *Server) guardMetrics(metrics http.Handler) http.Handler {
	if s.options.AuthenticateMetrics == nil {
		return metrics
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := s.mayCall(s.options.AuthenticateMetrics, r, metricsPath); refused != nil {
			s.metrics.refused.WithLabelValues(refused.reason).Inc()
			http.Error(w, refused.text, refused.status)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

// servePlain serves metrics and probes: with TLS if who reads the metrics has to show
// who it is, which nobody else may overhear.
func (s *Server) servePlain(listener net.Listener) error {
	if s.options.AuthenticateMetrics == nil {
		return s.plain.Serve(listener)
	}
	s.plain.TLSConfig = s.tlsConfig()
	return s.plain.ServeTLS(listener, "", "")
}
