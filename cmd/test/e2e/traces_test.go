// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// spans is a collector of traces that keeps them.
type spans struct {
	collector.UnimplementedTraceServiceServer

	endpoint string

	mu  sync.Mutex
	all map[string]*otlp.Span // by ID
	of  map[string]string     // the service's name by the ID of its span
}

// Export implements the service of OTLP.
func (s *spans) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		service := text(resource.GetResource().GetAttributes(), "service.name")
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := hex.EncodeToString(span.GetSpanId())
				s.all[id], s.of[id] = span, service
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func text(attributes []*common.KeyValue, key string) string {
	for _, attribute := range attributes {
		if attribute.GetKey() == key {
			return attribute.GetValue().GetStringValue()
		}
	}
	return ""
}

// collect starts a collector.
func collect(t *testing.T) *spans {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &spans{endpoint: listener.Addr().String(), all: map[string]*otlp.Span{}, of: map[string]string{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// flag has kube-apiserver tell the collector of the requests that their clients trace,
// and of no others.
func (s *spans) flag(t *testing.T) sallyporttest.APIServerOption {
	t.Helper()
	config := filepath.Join(t.TempDir(), "tracing.yaml")
	writeFile(t, config, "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: "+s.endpoint+"\nsamplingRatePerMillion: 0\n")
	return sallyporttest.WithAPIServerFlag("tracing-config-file", config)
}

// traced sends requests as part of a trace.
type traced struct {
	next  http.RoundTripper
	trace string // its ID
}

// RoundTrip sends the header of W3C's Trace Context, which says that the trace is sampled.
func (c *traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+c.trace+"-b7ad6b7169203331-01")
	return c.next.RoundTrip(r)
}

// testTraces has kube-apiserver and sallyport tell one collector of a request.
func testTraces(t *testing.T, e *env) {
	name := e.namespace(t, "traces")
	e.serve(t, name, lab.Set("tracing.endpoint", `"`+e.traces.endpoint+`"`))
	const trace = "0af7651916cd43dd8448eb211c80319c"
	config := rest.CopyConfig(e.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &traced{next, trace} })
	tracing, err := client.New(config, client.Options{Scheme: e.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tracing.Create(t.Context(), simplePod(name, "traced")); err != nil {
		t.Fatal(err)
	}
	traces := e.traces
	eventually(t, "a span of the review within one of the request", func(context.Context) (bool, error) {
		traces.mu.Lock()
		defer traces.mu.Unlock()
		for id, span := range traces.all {
			if traces.of[id] != "sallyport" || text(span.GetAttributes(), "admission.name") != "traced" {
				continue
			}
			if got := hex.EncodeToString(span.GetTraceId()); got != trace {
				t.Errorf("the trace is %s, the client's is %s", got, trace)
			}
			if resource := text(span.GetAttributes(), "admission.resource"); resource != "pods" {
				t.Errorf("the resource is %q", resource)
			}
			parent := hex.EncodeToString(span.GetParentSpanId())
			return traces.of[parent] == "apiserver" || traces.of[parent] == "kube-apiserver", nil
		}
		return false, nil
	})
}
