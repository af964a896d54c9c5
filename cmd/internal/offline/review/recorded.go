// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// Recorded returns the question in a recorded AdmissionReview.
func Recorded(o *manifest.Object) (Question, error) {
	// Both versions have the same request.
	var review struct {
		Request *admissionv1.AdmissionRequest `json:"request"`
	}
	if err := o.Decode(&review); err != nil {
		return Question{}, err
	}
	req := review.Request
	if req == nil {
		return Question{}, o.ErrorAt("", "the AdmissionReview has no request: a response alone cannot be replayed; record the request of the API server")
	}
	if req.Operation == "" || req.Kind.Kind == "" || req.Resource.Resource == "" {
		return Question{}, o.ErrorAt("/request", "the request of the AdmissionReview has no operation, kind or resource, which the API server always sends")
	}
	at, raw := jsontext.Pointer("/request/object"), jsontext.Value(req.Object.Raw)
	if len(raw) == 0 {
		at, raw = "/request/oldObject", req.OldObject.Raw
	}
	if len(raw) == 0 { // for example a CONNECT
		at, raw = "/request", jsontext.Value("{}")
	}
	var body struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := o.DecodePart(at, raw, &body); err != nil {
		return Question{}, err
	}
	gv := schema.GroupVersion{Group: req.Kind.Group, Version: req.Kind.Version}
	about := o.Part(at, raw, metav1.TypeMeta{APIVersion: gv.String(), Kind: req.Kind.Kind}, body.Metadata)
	if about.Name == "" {
		about.Name = req.Name
	}
	if about.Namespace == "" && req.Kind.Kind != "Namespace" { // a Namespace's own request has its name there
		about.Namespace = req.Namespace
	}
	return Question{Object: about, Review: replay.Review{Version: o.APIVersion, Request: req}}, nil
}
