// SPDX-License-Identifier: Apache-2.0

package serving

import "net/http"

// Handler answers as [Server.Run] does over TLS, within the same limits, for a
// listener that somebody else keeps. It is open as soon as the checks that gate it
// pass, which it looks at by itself only while Run runs; a server without such checks
// needs no Run.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serveHTTP) }
