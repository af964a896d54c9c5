// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// stamper sets the requester of a new namespace, whatever its author has set.
// Exceptions are namespaces that OpenShift annotates, and exempt accounts, which create
// namespaces for others.
type stamper struct{ settings Settings }

// Handle implements [admission.Handler].
func (s *stamper) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Resource != namespaceResource {
		return wrongResource(req), nil
	}
	if req.Operation != admissionv1.Create || req.SubResource != "" || s.settings.exempt(&req.UserInfo) {
		return admission.Allowed(), nil
	}
	h, ok := readHeader(req.Object.Raw)
	if !ok {
		return unreadable(), nil
	}
	if h.openShift != "" || h.stamp == req.UserInfo.Username {
		return admission.Allowed(), nil
	}
	name, err := jsontext.AppendQuote(nil, req.UserInfo.Username)
	if err != nil {
		return nil, fmt.Errorf("the name of the user is not text: %w", err)
	}
	b := jsonpatch.NewBuilder(req.Object.Raw)
	b.Set(name, "metadata", "annotations", Annotation)
	patch, err := b.Patch()
	if err != nil {
		return nil, err
	}
	resp := admission.Patched(patch)
	if admission.WantsOrigins(ctx) {
		resp.Origins = []admission.Origin{{Path: jsonpatch.Pointer("metadata", "annotations", Annotation), Source: "projectlimit: who asks for it"}}
	}
	return resp, nil
}
