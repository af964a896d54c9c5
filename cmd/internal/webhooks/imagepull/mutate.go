// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// mutator sets the pull policy of images that a pod begins to use: all images on
// creation, and those of added ephemeral containers. The API server forbids changing it
// for an existing container; see validator.
type mutator struct{ policy *policy }

var always = json.RawMessage(`"Always"`)

// Handle implements [admission.Handler].
func (m *mutator) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if answer := concerned(m.policy, req); answer != nil {
		return answer, nil
	}
	if req.Operation == admissionv1.Update && req.SubResource != ephemeralContainers {
		return admission.Allowed(), nil
	}
	var before []use
	if req.Operation == admissionv1.Update {
		if _, ok := readPod(req.OldObject.Raw, func(u use) { before = append(before, u) }); !ok {
			return admission.BadRequest("the request's old object is not a pod"), nil
		}
	}
	var patch jsonpatch.Patch
	mirror, ok := readPod(req.Object.Raw, func(u use) {
		if !m.policy.mustPull(&u) || u.same(before) {
			return
		}
		op := jsonpatch.Operation{Op: jsonpatch.Add, Path: u.path(), Value: always}
		if u.hasPolicy {
			op.Op = jsonpatch.Replace
		}
		patch = append(patch, op)
	})
	switch {
	case !ok:
		return notAPod(), nil
	case mirror || len(patch) == 0:
		return admission.Allowed(), nil
	}
	resp := admission.Patched(patch)
	if admission.WantsOrigins(ctx) {
		for _, op := range patch {
			resp.Origins = append(resp.Origins, admission.Origin{Path: op.Path, Source: "imagepull: alwaysPull"})
		}
	}
	return resp, nil
}
