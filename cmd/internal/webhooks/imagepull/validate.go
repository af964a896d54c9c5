// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// validator refuses pods that begin to use an image against the settings: on creation,
// when a container's image changes to one that the pod did not run, and when ephemeral containers are added. Images
// already in use are not checked, so that pods older than the settings can still be
// labelled and deleted.
type validator struct{ policy *policy }

// told limits the violations in a message.
const told = 8

// Handle implements [admission.Handler].
func (v *validator) Handle(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if answer := concerned(v.policy, req); answer != nil {
		return answer, nil
	}
	updates := req.Operation == admissionv1.Update
	var before []use
	if updates {
		if _, ok := readPod(req.OldObject.Raw, func(u use) { before = append(before, u) }); !ok {
			return admission.BadRequest("the request's old object is not a pod"), nil
		}
	}
	var violations []string
	mirror, ok := readPod(req.Object.Raw, func(u use) {
		// The plugin does not look at ephemeral containers, whose policy can still be set.
		if !updates || !u.same(before) && (req.SubResource != "" || !u.runs(before)) {
			violations = append(violations, v.policy.violations(&u, updates && req.SubResource == "")...)
		}
	})
	switch {
	case !ok:
		return notAPod(), nil
	case mirror || len(violations) == 0:
		return admission.Allowed(), nil
	}
	more := ""
	if n := len(violations) - told; n > 0 {
		violations, more = violations[:told], fmt.Sprintf("; and %d more", n)
	}
	return admission.DeniedResponse(fmt.Sprintf("pod %s: %s%s", title(req), strings.Join(violations, "; "), more)), nil
}

// title names the pod in messages, as far as it has a name yet.
func title(req *admissionv1.AdmissionRequest) string {
	name := req.Name
	for _, field := range []string{"name", "generateName"} {
		if name == "" {
			value, _ := rawjson.Lookup(req.Object.Raw, "metadata", field)
			r := rawjson.NewReader(value)
			text, _ := r.String()
			name = string(text)
		}
	}
	if name == "" {
		name = "(without a name)"
	}
	return req.Namespace + "/" + name
}
