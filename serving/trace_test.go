// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentSpan  = "00f067aa0ba902b7"
)

func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	h := start(t, func(o *Options) {
		o.Tracer = provider.Tracer("test")
		o.Routes = []Route{
			{Path: "/hello", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				trace.SpanFromContext(r.Context()).SetAttributes(attribute.Bool("seen", true))
			})},
			{Path: "/broken", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })},
		}
		o.Authenticate = func(r *http.Request) error {
			if r.Header.Get("X-Caller") == "nobody" {
				return ErrUnauthenticated
			}
			return nil
		}
	})
	for name, test := range map[string]struct {
		path, caller, sampled string
		status                int
		code                  codes.Code
		spans                 int
	}{
		"a call belongs to the caller's trace":   {"/hello", "friend", "01", 200, codes.Unset, 1},
		"a handler that panics is an error":      {"/broken", "friend", "01", 500, codes.Error, 1},
		"what the caller does not trace is not":  {"/hello", "friend", "00", 200, codes.Unset, 0},
		"who may not call leaves nothing behind": {"/hello", "nobody", "01", 401, codes.Unset, 0},
	} {
		t.Run(name, func(t *testing.T) {
			recorder.Reset()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url(test.path), strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Caller", test.caller)
			request.Header.Set("traceparent", fmt.Sprintf("00-%s-%s-%s", parentTrace, parentSpan, test.sampled))
			response, err := h.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			readReply(t, response).expect(t, test.status, "")
			spans := recorder.Ended()
			if len(spans) != test.spans {
				t.Fatalf("%d spans, want %d", len(spans), test.spans)
			}
			if test.spans == 0 {
				return
			}
			span := spans[0]
			if span.Parent().TraceID().String() != parentTrace || span.Parent().SpanID().String() != parentSpan ||
				span.SpanKind() != trace.SpanKindServer || span.Name() != "webhook "+test.path || span.Status().Code != test.code {
				t.Errorf("the span: %s of %v, kind %s, %v", span.Name(), span.Parent(), span.SpanKind(), span.Status())
			}
			if !slices.Contains(span.Attributes(), attribute.Int("http.response.status_code", test.status)) {
				t.Errorf("attributes: %v", span.Attributes())
			}
			if seen := slices.Contains(span.Attributes(), attribute.Bool("seen", true)); seen != (test.path == "/hello") {
				t.Errorf("the handler has found the span: %t", seen)
			}
			if events := span.Events(); len(events) != 2 || events[0].Name != "body read" || events[1].Name != "seat taken" {
				t.Errorf("events: %v", events)
			}
		})
	}
}
