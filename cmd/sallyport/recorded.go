// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// isRecorded tells whether an object is an AdmissionReview.
func isRecorded(o *object) bool {
	return o.Kind == "AdmissionReview" && (o.APIVersion == reviewVersion || o.APIVersion == "admission.k8s.io/v1beta1")
}

// recorded is the question of an AdmissionReview, as it was asked.
func recorded(o *object) (question, error) {
	// Both versions have the same request.
	var review struct {
		Request *admissionv1.AdmissionRequest `json:"request"`
	}
	if err := decode(o.document, o.pointer, o.raw, &review); err != nil {
		return question{}, err
	}
	req := review.Request
	if req == nil {
		return question{}, o.document.errorAt(o.pointer, "the AdmissionReview has no request: an answer alone cannot be replayed; record what the API server sends")
	}
	if req.Operation == "" || req.Kind.Kind == "" || req.Resource.Resource == "" {
		return question{}, o.document.errorAt(o.pointer+"/request", "the request of the AdmissionReview has no operation, no kind or no resource: it is not what the API server sends")
	}
	about := &object{
		document: o.document, pointer: o.pointer + "/request/object", raw: req.Object.Raw,
		TypeMeta: metav1.TypeMeta{APIVersion: schema.GroupVersion{Group: req.Kind.Group, Version: req.Kind.Version}.String(), Kind: req.Kind.Kind},
	}
	if len(about.raw) == 0 {
		about.pointer, about.raw = o.pointer+"/request/oldObject", req.OldObject.Raw
	}
	if len(about.raw) == 0 { // a CONNECT, for one
		about.pointer, about.raw = o.pointer+"/request", jsontext.Value("{}")
	}
	var body struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := decode(about.document, about.pointer, about.raw, &body); err != nil {
		return question{}, err
	}
	about.ObjectMeta = body.Metadata
	if about.Name == "" {
		about.Name = req.Name
	}
	if about.Namespace == "" && req.Kind.Kind != "Namespace" { // the request for one has its name there
		about.Namespace = req.Namespace
	}
	return question{object: about, version: o.APIVersion, req: req}, nil
}
