// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
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

// plainRules has warnings of no type of its own, and takes any object.
type plainRules struct{}

func (plainRules) ValidateCreate(_ context.Context, object runtime.Object) ([]string, error) {
	return []string{object.(*corev1.Pod).Name}, nil
}
func (plainRules) ValidateUpdate(context.Context, runtime.Object, runtime.Object) ([]string, error) {
	return nil, nil
}
func (plainRules) ValidateDelete(context.Context, runtime.Object) ([]string, error) { return nil, nil }

func TestTypesOfControllerRuntimeServeUnchanged(t *testing.T) {
	if resp := allowed(t, admission.MutateWith(podRules{}), podRequest(admissionv1.Create)); len(resp.Patch) != 1 {
		t.Errorf("patch %s", resp.Patch.AppendJSON(nil))
	}
	validator := admission.ValidateWith(podRules{})
	for operation, want := range map[admissionv1.Operation]string{
		admissionv1.Create: "create a", admissionv1.Update: "update old i", admissionv1.Delete: "delete",
	} {
		resp := handle(t, validator, podRequest(operation))
		if !reflect.DeepEqual(resp.Warnings, []string{want}) || resp.Allowed != (operation != admissionv1.Delete) {
			t.Errorf("%s: %+v", operation, resp)
		}
	}
	resp := allowed(t, admission.ValidateWith(plainRules{}, admission.As(&corev1.Pod{})), podRequest(admissionv1.Create))
	if !reflect.DeepEqual(resp.Warnings, []string{"a"}) {
		t.Errorf("warnings %q", resp.Warnings)
	}
}
