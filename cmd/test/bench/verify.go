// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// verifyAllowed checks the answer of a server that knows nothing but to allow.
func verifyAllowed(answer []byte) error {
	_, err := decodeAnswer(answer)
	return err
}

func decodeAnswer(answer []byte) (*admissionv1.AdmissionReview, error) {
	var envelope admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return nil, fmt.Errorf("the answer is not a review: %w", err)
	}
	if envelope.Response == nil {
		return nil, errors.New("the answer has no response")
	}
	if !envelope.Response.Allowed {
		return nil, fmt.Errorf("the object is refused: %v", envelope.Response.Result)
	}
	return &envelope, nil
}

// verify checks that an answer is what kube-apiserver accepts and makes of the
// object exactly what edit makes of it; nil means that nothing may change.
func verify(answer []byte, r review, edit func(object map[string]any), options ...cmp.Option) error {
	if isConversion(r.name) {
		return verifyConversion(answer, r)
	}
	if r.name == volumeReviewName {
		return verifyVolume(answer, r)
	}
	if edit == nil {
		envelope, err := decodeReply(answer, r)
		if err == nil && len(envelope.Response.Patch) > 0 {
			err = fmt.Errorf("a patch where nothing has to change: %s", envelope.Response.Patch)
		}
		return err
	}
	patched, err := applyAnswer(answer, r)
	if err != nil {
		return err
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(patched, &got), json.Unmarshal(r.object, &want)); err != nil {
		return err
	}
	edit(want)
	forgetDecisions(got, want)
	if diff := cmp.Diff(want, got, options...); diff != "" {
		return fmt.Errorf("the patched object is not the intended one (- intended, + patched):\n%s", diff)
	}
	return nil
}

// decodeReply checks that an answer is one to the review.
func decodeReply(answer []byte, r review) (*admissionv1.AdmissionReview, error) {
	envelope, err := decodeAnswer(answer)
	if err != nil {
		return nil, err
	}
	if envelope.APIVersion != "admission.k8s.io/v1" || envelope.Kind != "AdmissionReview" {
		return nil, fmt.Errorf("the answer is a %s of %s", envelope.Kind, envelope.APIVersion)
	}
	if got := string(envelope.Response.UID); got != r.uid {
		return nil, fmt.Errorf("the answer has the UID %q, the review %q", got, r.uid)
	}
	return envelope, nil
}

// applyAnswer is what kube-apiserver makes of the object.
func applyAnswer(answer []byte, r review) ([]byte, error) {
	envelope, err := decodeReply(answer, r)
	if err != nil {
		return nil, err
	}
	if t := envelope.Response.PatchType; t == nil || *t != admissionv1.PatchTypeJSONPatch {
		return nil, errors.New("the answer has no JSON Patch")
	}
	patch, err := jsonpatch.DecodePatch(envelope.Response.Patch)
	if err != nil {
		return nil, fmt.Errorf("the patch is not one: %w", err)
	}
	patched, err := patch.Apply(r.object)
	if err != nil {
		return nil, fmt.Errorf("the patch does not apply: %w", err)
	}
	return patched, nil
}

// injection is the change to a pod as JSON, without any of the types that the
// servers go through. A PodDefault that is from no API server leaves no mark.
func injection(pd *v1alpha1.PodDefault) (func(pod map[string]any), error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pd.Spec)
	return func(pod map[string]any) { inject(pod, pd, spec) }, err
}

func inject(pod map[string]any, pd *v1alpha1.PodDefault, spec map[string]any) {
	podSpec := child(pod, "spec")
	containers, _ := podSpec["containers"].([]any)
	for _, c := range containers {
		container, _ := c.(map[string]any)
		extend(container, "env", spec["env"])
		extend(container, "volumeMounts", spec["volumeMounts"])
	}
	extend(podSpec, "volumes", spec["volumes"])
	if pd.ResourceVersion != "" {
		child(child(pod, "metadata"), "annotations")[markPrefix+pd.Name] = pd.ResourceVersion
	}
}

// forgetDecisions removes the annotations in which a server tells what else it
// has decided, and the revision behind the resourceVersion of a mark.
func forgetDecisions(object, want map[string]any) {
	annotations, _ := child(object, "metadata")["annotations"].(map[string]any)
	wanted, _ := child(want, "metadata")["annotations"].(map[string]any)
	for key := range annotations {
		if _, intended := wanted[key]; !intended && strings.HasPrefix(key, "sallyport.io/") {
			delete(annotations, key)
		}
		if value, ok := annotations[key].(string); ok && strings.HasPrefix(key, markPrefix) {
			annotations[key], _, _ = strings.Cut(value, "@")
		}
	}
}

// child returns the object under a key, which it makes if need be.
func child(object map[string]any, key string) map[string]any {
	c, ok := object[key].(map[string]any)
	if !ok {
		c = map[string]any{}
		object[key] = c
	}
	return c
}

// extend appends to the list under a key.
func extend(object map[string]any, key string, more any) {
	items, _ := more.([]any)
	if len(items) == 0 {
		return
	}
	list, _ := object[key].([]any)
	object[key] = append(list, items...)
}
