// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many may read /metrics at one time: as many as Prometheus has replicas,
// as a rule. It is dear to gather them.
const maxScrapes = 2

// plainHandler answers what is no webhook: metrics, and the probes.
func (s *Server) plainHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc(livezPath, s.health.livez)
	mux.HandleFunc(readyzPath, s.health.readyz)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Nobody reads it, and nobody shall wait for it.
			w.Header().Set("Connection", "close")
			defer s.plainConnections.refused(connOf(r.Context()))
		}
		mux.ServeHTTP(w, r)
	})
}
