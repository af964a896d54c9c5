// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/sallyport-io/sallyport/serving/internal/panics"
)

// serveHTTP dispatches a request by its path. All requests over TLS pass through it.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, server: s, connection: r.Context()}
	switch path := r.URL.Path; path {
	case livezPath:
		s.health.livez(a, r)
	case readyzPath:
		s.health.readyz(a, r)
	default:
		if to := s.find(path); to != nil {
			s.review(a, s.withoutSegment(r, to), to)
		} else if handler := s.other(r); handler != nil {
			s.review(a, r, &route{Route: Route{Path: otherPaths, Handler: handler, AnyMethod: true}, durations: s.otherDurations})
		} else {
			s.refuse(a, unknownPath)
		}
	}
}

func (s *Server) other(r *http.Request) http.Handler {
	if s.options.Others == nil {
		return nil
	}
	return s.options.Others(r)
}

// review passes a call through the limits to its handler.
func (s *Server) review(a *answer, r *http.Request, to *route) {
	arrived := time.Now()
	defer s.finish(a, r, to, arrived)

	if r.Method != http.MethodPost && !to.AnyMethod {
		s.refuse(a, notPost)
		return
	}
	if !to.Ungated && !s.health.gateOpen.Load() {
		s.refuse(a, notReady)
		return
	}

	budget := timeBudget(r.URL.RawQuery)
	ctx := withDeadline(r.Context(), arrived.Add(budget))
	defer ctx.end()
	r = r.WithContext(ctx)
	ctx.request = r
	// Before the body is read, so that unauthorized callers cost nothing.
	if refused := s.authenticate(r, to); refused != nil {
		s.refuse(a, refused)
		return
	}
	// After authentication, so that unauthorized callers cannot keep connections or fill traces.
	s.connections.carries(r, call{path: to.Path, deadline: ctx.deadline})
	if s.options.Tracer != nil {
		r = s.beginSpan(a, r, to, arrived)
	}

	a.body.w, a.body.request = a.ResponseWriter, r
	data, refused := s.readBody(r, &a.body)
	defer s.bodies.give(&a.body)
	if refused != nil {
		s.refuse(a, refused)
		return
	}

	a.note("body read")
	a.to, a.data = to, data
	// Half of the time is for the queue, the other half for the handler or another replica.
	if refused := a.takeSeat(ctx, arrived.Add(budget/2), false); refused != nil {
		s.refuse(a, refused)
		return
	}
	defer a.giveSeat()
	a.note("seat taken")

	if to.Answer != nil {
		to.Answer(r.Context(), a, Call{Request: r, Body: data, answer: a})
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	to.Handler.ServeHTTP(a, r)
}

// finish ends a call: it turns a panic into a 500, and records metrics. It must be deferred
// directly to recover.
func (s *Server) finish(a *answer, r *http.Request, to *route, arrived time.Time) {
	value := recover()
	err, _ := value.(error)
	cut := errors.Is(err, http.ErrAbortHandler)
	if value != nil && !cut {
		s.metrics.panics.Inc()
		webhook, text := panics.Describe(value)
		s.log.ErrorContext(r.Context(), "webhook panicked", slog.String("webhook", webhook), slog.String("path", to.Path),
			slog.String("panic", text), slog.String("stack", string(debug.Stack())))
		if a.status == 0 {
			s.refuse(a, panicked)
		} else {
			cut = true
		}
	}
	if a.status == 0 && !cut {
		a.WriteHeader(http.StatusOK)
	}
	to.durations.observe(a.status, time.Since(arrived))
	a.endSpan(cut)
	if cut {
		// Part of the response may have been sent. Cutting the connection is the only way
		// to signal that it is incomplete.
		panic(http.ErrAbortHandler)
	}
}
