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
	// Like the admission plugin, ignore everything that is not a volume.
	if req.Resource != resource || req.SubResource != "" || len(req.Object.Raw) == 0 {
		return admission.Allowed(), nil
	}
	switch req.Operation {
	case admissionv1.Create:
		return h.create(ctx, req.Object.Raw)
	case admissionv1.Update:
		return h.update(ctx, req.Object.Raw, req.OldObject.Raw)
	default:
		return admission.Allowed(), nil
	}
}

func (h *handler) create(ctx context.Context, raw []byte) (*admission.Response, error) {
	v, ok := readVolume(raw, h.sources)
	if !ok {
		return notAVolume(), nil
	}
	known, err := h.ask(ctx, &v, raw)
	switch {
	case errors.Is(err, errNotAVolume):
		return notAVolume(), nil
	case err != nil && isDecision(err):
		return forbidden(&v, err), nil
	case err != nil:
		return nil, err
	case known == nil:
		return admission.Allowed(), nil
	}
	return h.patched(ctx, &v, known, true), nil
}

// update labels a volume that was missed. Existing volumes must stay bindable, usable
// and deletable whatever the cloud answers, so no update is refused.
func (h *handler) update(ctx context.Context, raw, oldRaw []byte) (*admission.Response, error) {
	v, ok := readVolume(raw, h.sources)
	old, okOld := readVolume(oldRaw, h.sources)
	if !ok || !okOld || v.deleting || v.complete() {
		return admission.Allowed(), nil
	}
	known, err := h.ask(ctx, &v, raw)
	switch {
	case err != nil:
		return admission.Allowed().Warn("this volume has not all labels of its zone and region: " + err.Error()), nil
	case known == nil:
		return admission.Allowed(), nil
	}
	return h.patched(ctx, &v, known, isNull(old.affinity)), nil
}

// ask returns the labels that a volume must have, or nil if it stays unchanged. The
// error comes from the cloud (see [isDecision]), or is errNotAVolume or a fault.
func (h *handler) ask(ctx context.Context, v *volume, raw []byte) (*known, error) {
	k := &known{from: "its labels, which a provisioner has set"}
	if labels := v.trusted(); labels != nil {
		k.answer = newAnswer(labels)
		k.answer.invalid = "" // set by the user and validated by the API server
	} else {
		if !v.exists() {
			return nil, nil
		}
		var err error
		k.from = "the cloud, for " + queried(v)
		k.answer, err = h.lookups.ask(ctx, question{v.disk, v.topology}, func() (*corev1.PersistentVolume, error) { return decode(raw) })
		switch {
		case err != nil && isDecision(err):
			return nil, fmt.Errorf("error querying %s: %w", queried(v), err)
		case err != nil:
			return nil, err
		}
	}
	switch {
	case k.invalid != "":
		return nil, &decision{fmt.Errorf("the cloud's labels for %s are invalid: %s; this is a fault of the cloud provider: "+
			"until it is corrected, create the volume while its webhook is off, and set the node affinity yourself", queried(v), k.invalid)}
	case len(k.labels) == 0:
		return nil, nil
	case k.err != nil:
		return nil, &decision{k.err}
	}
	return k, nil
}

// known is an answer with its origin.
type known struct {
	*answer
	from string
}

func (h *handler) patched(ctx context.Context, v *volume, k *known, affinity bool) *admission.Response {
	patch, ok := edit(v, k.answer, affinity)
	if !ok {
		return notAVolume()
	}
	resp := admission.Patched(patch)
	if admission.WantsOrigins(ctx) {
		for _, op := range patch {
			resp.Origins = append(resp.Origins, admission.Origin{Path: strings.TrimSuffix(op.Path, "/-"), Source: "persistentvolumelabel: " + k.from})
		}
	}
	return resp
}

// forbidden refuses with the plugin's message: persistentvolumes "NAME" is forbidden: …
func forbidden(v *volume, err error) *admission.Response {
	return admission.StatusResponse(apierrors.NewForbidden(schema.GroupResource{Resource: resource.Resource}, cmp.Or(v.name, v.generateName), err).ErrStatus)
}

func notAVolume() *admission.Response {
	return admission.BadRequest("not a persistent volume: metadata, spec, source or nodeAffinity is missing or invalid")
}

var errNotAVolume = errors.New("no persistent volume")

// decode returns the volume for the cloud provider.
func decode(raw []byte) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, pv); err != nil {
		return nil, errNotAVolume // the error would repeat the content
	}
	return pv, nil
}
