// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes limits concurrent reads of /metrics, which are expensive: usually there are as
// many as Prometheus has replicas.
const maxScrapes = 2

// plainHandler serves metrics and probes.
func (s *Server) plainHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(metricsPath, s.guardMetrics(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})))
	for path, handler := range s.options.MetricsRoutes {
		mux.Handle(path, s.guardMetrics(handler))
	}
	mux.HandleFunc(livezPath, s.health.livez)
	mux.HandleFunc(readyzPath, s.health.readyz)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// The body is not read, and must not delay the response.
			w.Header().Set("Connection", "close")
			defer s.plainConnections.waitsFor(r.Context())
		}
		mux.ServeHTTP(w, r)
	})
}

// guardMetrics rejects callers that may not read the metrics or another path, if they are
// protected.
func (s *Server) guardMetrics(protected http.Handler) http.Handler {
	if s.options.AuthenticateMetrics == nil {
		return protected
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused := s.mayCall(s.options.AuthenticateMetrics, r, r.URL.Path); refused != nil {
			s.metrics.refused.WithLabelValues(refused.reason).Inc()
			http.Error(w, refused.text, refused.status)
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// servePlain serves metrics and probes, with TLS if readers of the metrics authenticate, to
// protect their credentials.
func (s *Server) servePlain(listener net.Listener) error {
	if s.options.AuthenticateMetrics == nil {
		return s.plain.Serve(listener)
	}
	s.plain.TLSConfig = s.tlsConfig()
	return s.plain.ServeTLS(listener, "", "")
}
