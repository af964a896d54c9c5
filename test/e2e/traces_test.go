// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// spans is a collector of traces that keeps them.
type spans struct {
	collector.UnimplementedTraceServiceServer

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

func collect(t *testing.T) (s *spans, endpoint string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = &spans{all: map[string]*otlp.Span{}, of: map[string]string{}}
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
	return s, listener.Addr().String()
}

// TestACallIsInTheTraceOfItsRequest has kube-apiserver and sallyport tell one collector.
func TestACallIsInTheTraceOfItsRequest(t *testing.T) {
	t.Parallel()
	traces, endpoint := collect(t)
	config := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: "+endpoint+
		"\nsamplingRatePerMillion: 1000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, sallyporttest.WithAPIServerFlag("tracing-config-file", config))
	name := e.namespace(t, "traces")
	e.serve(t, name, lab.Set("tracing.endpoint", `"`+endpoint+`"`))
	e.create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "traced"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/main:1"}}},
	})
	eventually(t, "a span of the review within one of the request", func(context.Context) (bool, error) {
		traces.mu.Lock()
		defer traces.mu.Unlock()
		for id, span := range traces.all {
			if traces.of[id] != "sallyport" || text(span.GetAttributes(), "admission.name") != "traced" {
				continue
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
