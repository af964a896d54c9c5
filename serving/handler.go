// SPDX-License-Identifier: Apache-2.0

package serving

import "net/http"

// Handler serves like [Server.Run], within the same limits, for a listener of another
// server. It serves once all Gate checks have passed, which are only polled while Run runs;
// a server without such checks does not need Run.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }
