// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/emit"
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
	patch := emit.New(admission.WantsOrigins(ctx), 0)
	mirror, ok := readPod(req.Object.Raw, func(u use) {
		if !m.policy.mustPull(&u) || u.same(before) {
			return
		}
		path := u.path()
		if u.hasPolicy {
			patch.Replace(path, always)
		} else {
			patch.Add(path, always)
		}
		patch.Origin(emit.Source("imagepull: alwaysPull"), path)
	})
	switch {
	case !ok:
		return notAPod(), nil
	case mirror || len(patch.Operations) == 0:
		return admission.Allowed(), nil
	}
	return patch.Response(), nil
}
