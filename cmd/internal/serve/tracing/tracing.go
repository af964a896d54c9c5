// SPDX-License-Identifier: Apache-2.0

// Package tracing exports the spans of a server to an OpenTelemetry collector, like
// Kubernetes' own components. It is separate from package serving because of its
// dependencies, above all gRPC.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componenttracing "k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
)

// Settings configure where spans are exported. They are those of kube-apiserver's
// TracingConfiguration (KEP-647).
type Settings struct {
	// endpoint is the host:port of an OpenTelemetry collector (OTLP over gRPC, without
	// TLS). If empty, nothing is exported.
	Endpoint string `json:"endpoint,omitempty"`
	// samplingRatePerMillion is the number of calls to trace per million calls that their
	// caller does not trace. Calls that kube-apiserver traces are always traced. Default 0.
	SamplingRatePerMillion int32 `json:"samplingRatePerMillion" min:"0" max:"1000000"`
}

// Validate reports all problems, by the JSON names of the fields below a path.
func (s *Settings) Validate(path *field.Path) field.ErrorList {
	errs := tags.Validate(s, path)
	if s.Endpoint != "" {
		if host, port, err := net.SplitHostPort(s.Endpoint); err != nil || host == "" || port == "" {
			errs = append(errs, field.Invalid(path.Child("endpoint"), s.Endpoint, "write HOST:PORT, for example localhost:4317"))
		}
	}
	if s.Endpoint == "" && s.SamplingRatePerMillion != 0 {
		errs = append(errs, field.Forbidden(path.Child("samplingRatePerMillion"), "has no effect without endpoint"))
	}
	return errs
}

// Start returns a tracer provider for a service, nil if tracing is disabled, and a func
// that exports the last spans when the server ends. The collector need not be
// reachable. Export errors are logged by OpenTelemetry's error handler, which is global
// to the process: call Start once per program.
func (s *Settings) Start(ctx context.Context, service, version string, logger *slog.Logger) (tracer trace.Tracer, shutdown func(context.Context) error, err error) {
	if s.Endpoint == "" {
		return nil, func(context.Context) error { return nil }, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces cannot be sent", "error", err) }))
	provider, err := componenttracing.NewProvider(ctx,
		&tracingapi.TracingConfiguration{Endpoint: &s.Endpoint, SamplingRatePerMillion: &s.SamplingRatePerMillion}, nil,
		[]resource.Option{resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version))})
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	return provider.Tracer("github.com/sallyport-io/sallyport"), provider.Shutdown, nil
}
