// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/admission"
)

// podRules is written for controller-runtime.
type podRules struct{}

var (
	_ ctrladmission.Defaulter[*corev1.Pod] = podRules{}
	_ ctrladmission.Validator[*corev1.Pod] = podRules{}
)

func (podRules) Default(_ context.Context, pod *corev1.Pod) error {
	pod.Spec.NodeName = "n"
	return nil
}

func (podRules) ValidateCreate(_ context.Context, pod *corev1.Pod) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"create " + pod.Name}, nil
}

func (podRules) ValidateUpdate(_ context.Context, old, pod *corev1.Pod) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"update " + old.Spec.Containers[0].Image + " " + pod.Spec.Containers[0].Image}, nil
}

func (podRules) ValidateDelete(_ context.Context, pod *corev1.Pod) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"delete"}, errors.New("stays")
}

// plainRules returns warnings and accepts any object.
type plainRules struct{}

func (plainRules) ValidateCreate(_ context.Context, object runtime.Object) ([]string, error) {
	return []string{object.(*corev1.Pod).Name}, nil
}
func (plainRules) ValidateUpdate(context.Context, runtime.Object, runtime.Object) ([]string, error) {
	return nil, nil
}
func (plainRules) ValidateDelete(context.Context, runtime.Object) ([]string, error) { return nil, nil }

// reviewOfPod returns a request for pod a with image i. The old pod of an update has image old.
func reviewOfPod(operation admissionv1.Operation) *admissionv1.AdmissionRequest {
	req := &admissionv1.AdmissionRequest{UID: "u", Operation: operation, Name: "a", Namespace: "team", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}}
	pod := func(image string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"team"},"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}`)
	}
	if operation != admissionv1.Delete {
		req.Object.Raw = pod("i")
	}
	if operation != admissionv1.Create {
		req.OldObject.Raw = pod("old")
	}
	return req
}

func handle(t *testing.T, h admission.Handler, req *admissionv1.AdmissionRequest) *admission.Response {
	t.Helper()
	resp, err := h.Handle(t.Context(), req)
	if err != nil || resp == nil {
		t.Fatalf("response %v, fault %v", resp, err)
	}
	return resp
}

func TestTypesOfControllerRuntimeServeUnchanged(t *testing.T) {
	if resp := handle(t, admission.MutateWith(podRules{}), reviewOfPod(admissionv1.Create)); !resp.Allowed || len(resp.Patch) != 1 {
		t.Errorf("patch %s", resp.Patch.AppendJSON(nil))
	}
	validator := admission.ValidateWith(podRules{})
	for operation, want := range map[admissionv1.Operation]string{
		admissionv1.Create: "create a", admissionv1.Update: "update old i", admissionv1.Delete: "delete",
	} {
		resp := handle(t, validator, reviewOfPod(operation))
		if !reflect.DeepEqual(resp.Warnings, []string{want}) || resp.Allowed != (operation != admissionv1.Delete) {
			t.Errorf("%s: %+v", operation, resp)
		}
	}
	resp := handle(t, admission.ValidateWith(plainRules{}, admission.As(&corev1.Pod{})), reviewOfPod(admissionv1.Create))
	if !resp.Allowed || !reflect.DeepEqual(resp.Warnings, []string{"a"}) {
		t.Errorf("warnings %q", resp.Warnings)
	}
}
