// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/sallyport-io/sallyport/admission"
)

var resource = metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}

type handler struct {
	sources []Source
	lookups *lookups
}

// Handle implements [admission.Handler].
func (h *handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	// The admission plugin lets pass what is no volume, and so does this.
	if req.Resource != resource || req.SubResource != "" || req.Operation != admissionv1.Create || len(req.Object.Raw) == 0 {
		return admission.Allowed(), nil
	}
	v, ok := readVolume(req.Object.Raw, h.sources)
	if !ok {
		return notAVolume(), nil
	}
	var known *answer
	from := "its labels, which a provisioner has set"
	if labels := v.trusted(); labels != nil {
		known = newAnswer(labels)
		known.invalid = "" // they are the user's: the API server looks at them
	} else {
		if !v.exists() {
			return admission.Allowed(), nil
		}
		var err error
		from = "the cloud, for " + queried(&v)
		known, err = h.lookups.ask(ctx, question{v.disk, v.topology}, func() (*corev1.PersistentVolume, error) { return decode(req.Object.Raw) })
		switch {
		case errors.Is(err, errNotAVolume):
			return notAVolume(), nil
		case err != nil && isDecision(err):
			return forbidden(&v, fmt.Errorf("error querying %s: %w", queried(&v), err)), nil
		case err != nil:
			return nil, err
		}
	}
	switch {
	case known.invalid != "":
		return forbidden(&v, fmt.Errorf("the cloud's labels for %s are invalid: %s; this is a fault of the cloud provider: "+
			"until it is corrected, create the volume while its webhook is off, and set the node affinity yourself", queried(&v), known.invalid)), nil
	case len(known.labels) == 0:
		return admission.Allowed(), nil
	case known.err != nil:
		return forbidden(&v, known.err), nil
	}
	patch, ok := edit(&v, known)
	if !ok {
		return notAVolume(), nil
	}
	resp := admission.Patched(patch)
	if admission.WantsOrigins(ctx) {
		for _, op := range patch {
			resp.Origins = append(resp.Origins, admission.Origin{Path: strings.TrimSuffix(op.Path, "/-"), Source: "persistentvolumelabel: " + from})
		}
	}
	return resp, nil
}

// forbidden is the plugin's way to refuse: persistentvolumes "NAME" is forbidden: …
func forbidden(v *volume, err error) *admission.Response {
	return admission.DeniedWith(apierrors.NewForbidden(schema.GroupResource{Resource: resource.Resource}, cmp.Or(v.name, v.generateName), err).ErrStatus)
}

func notAVolume() *admission.Response {
	return admission.BadRequest("the request's object is no persistent volume: it is no JSON object, or its metadata, spec, source or node affinity are none")
}

var errNotAVolume = errors.New("no persistent volume")

// decode is what the cloud provider gets.
func decode(raw []byte) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, pv); err != nil {
		return nil, errNotAVolume // the error would repeat what stands there
	}
	return pv, nil
}
