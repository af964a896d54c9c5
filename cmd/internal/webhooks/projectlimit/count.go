// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// counter admits a project if its requester has fewer than the limit, and prevents
// changes of a namespace's requester. Exempt accounts may do both.
type counter struct {
	settings Settings
	source   Source
}

// Handle implements [admission.Handler].
func (c *counter) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Resource != namespaceResource && req.Resource != projectRequestResource {
		return wrongResource(req), nil
	}
	if c.settings.exempt(&req.UserInfo) {
		return admission.Allowed(), nil
	}
	switch {
	case req.Operation == admissionv1.Create && req.SubResource == "":
		return c.create(ctx, req)
	case req.Operation == admissionv1.Update && req.Resource == namespaceResource:
		return c.update(req), nil
	}
	return admission.Allowed(), nil
}

func (c *counter) create(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	h, ok := readHeader(req.Object.Raw)
	if !ok {
		return unreadable(), nil
	}
	what := "project"
	if req.Resource == namespaceResource {
		what = "namespace"
		if h.requester() != req.UserInfo.Username || h.stamp != "" && h.stamp != req.UserInfo.Username {
			return admission.DeniedResponse(fmt.Sprintf("namespace %s: its annotations do not name who asks for it: leave out %s; "+
				"%s is written for you, by the mutating webhook %s", h.title(), OpenShiftAnnotation, Annotation, StampName)), nil
		}
	}
	claim := Claim{
		Requester:        req.UserInfo.Username,
		Project:          h.name,
		Limit:            c.settings.limit(&req.UserInfo),
		CountTerminating: c.settings.CountTerminating,
		DryRun:           req.DryRun != nil && *req.DryRun,
	}
	if claim.Project == "" { // generateName: its reservation could not be matched to the namespace
		claim.Project = "uid/" + string(req.UID)
	}
	have, granted, err := c.source.Claim(ctx, claim)
	if err != nil {
		return nil, err
	}
	if !granted {
		return admission.DeniedResponse(fmt.Sprintf("%s %s: you have %d of at most %d projects, including those being created: "+
			"delete one, or ask a cluster administrator for a higher limit", what, h.title(), have, claim.Limit)), nil
	}
	return admission.Allowed(), nil
}

func (c *counter) update(req *admissionv1.AdmissionRequest) *admission.Response {
	now, ok := readHeader(req.Object.Raw)
	if !ok {
		return unreadable()
	}
	before, ok := readHeader(req.OldObject.Raw)
	if !ok {
		return admission.BadRequest("the request's old object is not a namespace")
	}
	if now.stamp == before.stamp && now.openShift == before.openShift {
		return admission.Allowed()
	}
	return admission.DeniedResponse(fmt.Sprintf("namespace %s: the annotations %s and %s say whose it is and cannot be changed: leave them as they are",
		now.title(), Annotation, OpenShiftAnnotation))
}
