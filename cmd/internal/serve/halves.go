// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// halves answers at one path for all webhooks of an entry. A webhook configuration that
// somebody else wrote has a single path, and calls it for what any of them covers.
//
// A review does not tell whether it is for a mutating or for a validating webhook. If the
// rules of both kinds cover a request, the kind of the first webhook answers.
type halves []admission.Webhook

// Handle implements [admission.Handler]. Of several webhooks of one kind, the first that
// does more than to admit the object answers.
func (h halves) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	var kind admission.Type
	var answer *admission.Response
	for _, w := range h {
		if !covers(w.Rules, req) || kind != "" && w.Type != kind {
			continue
		}
		kind = w.Type
		resp, err := w.Handler.Handle(ctx, req)
		if err != nil || !plain(resp) {
			return resp, err
		}
		answer = resp
	}
	if answer == nil {
		return h[0].Handler.Handle(ctx, req) // which says what it is for
	}
	return answer, nil
}

// plain reports whether a response only admits the object.
func plain(r *admission.Response) bool {
	return r != nil && r.Allowed && len(r.Patch) == 0 && len(r.Warnings) == 0 && len(r.AuditAnnotations) == 0
}

// covers reports whether rules without wildcards cover a request.
func covers(rules []admissionregistrationv1.RuleWithOperations, req *admissionv1.AdmissionRequest) bool {
	resource := req.Resource.Resource
	if req.SubResource != "" {
		resource += "/" + req.SubResource
	}
	return slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.Operations, admissionregistrationv1.OperationType(req.Operation)) &&
			slices.Contains(r.APIGroups, req.Resource.Group) && slices.Contains(r.APIVersions, req.Resource.Version) &&
			slices.Contains(r.Resources, resource)
	})
}
