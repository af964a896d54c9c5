// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// describe records the request and its decision in the span of the call, if there is
// one. Spans hold names and no content of objects.
func (a *Admission) describe(ctx context.Context, reviewed *Reviewed) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	req, resp := reviewed.Request, reviewed.Response
	resource := req.Resource.Resource
	if req.SubResource != "" {
		resource += "/" + req.SubResource
	}
	span.SetAttributes(
		attribute.String("webhook.name", a.webhook.Name),
		attribute.String("admission.uid", string(req.UID)),
		attribute.String("admission.operation", string(req.Operation)),
		attribute.String("admission.group", req.Resource.Group),
		attribute.String("admission.version", req.Resource.Version),
		attribute.String("admission.resource", resource),
		attribute.String("admission.namespace", req.Namespace),
		attribute.String("admission.name", req.Name),
		attribute.Bool("admission.dry_run", req.DryRun != nil && *req.DryRun),
		attribute.Bool("admission.allowed", resp.Allowed),
		attribute.Int("admission.patch_operations", len(resp.Patch)),
		attribute.Int("admission.warnings", len(resp.Warnings)),
	)
}

// describeConversion is [Admission.describe] for conversion. The returned span may
// record nothing.
func describeConversion(ctx context.Context, review *conversionReview) trace.Span {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("conversion.uid", review.uid),
			attribute.String("conversion.desired_api_version", review.desired),
			attribute.Int("conversion.objects", len(review.objects)),
		)
	}
	return span
}
