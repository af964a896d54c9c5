// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// propagator reads the header traceparent (W3C Trace Context), which kube-apiserver sends
// to webhooks if tracing is enabled.
var propagator propagation.TraceContext

// beginSpan starts a span of a call from its arrival, within the caller's trace.
func (s *Server) beginSpan(a *answer, r *http.Request, to *route, arrived time.Time) *http.Request {
	ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, a.span = s.options.Tracer.Start(ctx, "webhook "+to.Path, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(arrived),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", to.Path)))
	return r.WithContext(ctx)
}

// note adds an event to the span, if there is one.
func (a *answer) note(event string) {
	if a.span != nil {
		a.span.AddEvent(event)
	}
}

// endSpan ends the span, if there is one.
func (a *answer) endSpan(cut bool) {
	if a.span == nil {
		return
	}
	a.span.SetAttributes(attribute.Int("http.response.status_code", a.status))
	if cut || a.status >= http.StatusInternalServerError {
		a.span.SetStatus(codes.Error, "")
	}
	a.span.End()
}
