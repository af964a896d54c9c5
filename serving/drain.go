// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// drain ends serving without losing a call. It relies on what kube-apiserver
// does: it keeps idle connections for 90 s, sends calls on them however long the
// endpoint has been gone, and does not repeat a call whose connection is closed
// under it.
//
// So /readyz fails immediately, to direct new connections to other replicas, but all
// requests are still answered, with Connection: close. Idle connections stay open until
// they carry one more call or their client closes them. Closing them from this side, as
// http.Server.SetKeepAlivesEnabled(false) and Shutdown do, would race with a call in
// flight.
//
// This continues for at least DrainMin, and then until no connection of an API server is
// left, up to DrainTimeout; idle connections of other clients, such as probes, are closed. Only
// then, or on Close, the listener and the remaining connections are closed.
func (s *Server) drain() {
	began := time.Now()
	s.draining.Store(true)
	s.log.Info("draining", slog.Int("connections", s.connections.count()),
		slog.Duration("atLeast", s.options.DrainMin), slog.Duration("atMost", s.options.DrainTimeout))

	// Close ends all waiting below.
	latest, cancel := context.WithTimeout(s.closed, s.options.DrainTimeout)
	defer cancel()
	earliest := time.NewTimer(s.options.DrainMin)
	defer earliest.Stop()
	select {
	case <-earliest.C:
	case <-latest.Done():
	}
	s.awaitNoConnections(latest)
	// Connections accepted while the listener closed are still served.
	_ = s.listener.Close()
	s.awaitNoConnections(latest)

	left := s.connections.count()
	last, cancel := context.WithTimeout(s.closed, lastRequests)
	defer cancel()
	if err := s.webhooks.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("requests were cut off at the end of draining", slog.Duration("after", lastRequests))
	}
	s.log.Info("drained", slog.Int("connectionsLeft", left), slog.Duration("took", time.Since(began)))
}

// awaitNoConnections returns when there are no connections, or ctx ends. It closes idle
// connections on which no API server sends reviews.
func (s *Server) awaitNoConnections(ctx context.Context) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for s.connections.closeOthers(); s.connections.count() > 0; s.connections.closeOthers() {
		select {
		case <-s.connections.emptied:
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
