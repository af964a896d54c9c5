// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/controllerruntime"
)

// strict is a ConfigMap as API types were before v0.15.
type strict struct{ corev1.ConfigMap }

func (s *strict) DeepCopyObject() runtime.Object { return &strict{*s.DeepCopy()} }

func (s *strict) Default() { s.Data["defaulted"] = s.Namespace }

func (s *strict) ValidateCreate() error { return errors.New("create " + s.Name) }

func (s *strict) ValidateUpdate(old runtime.Object) error {
	return errors.New("update " + old.(*strict).Name + " to " + s.Name)
}

func (s *strict) ValidateDelete() error { return errors.New("delete " + s.Name) }

// chatty is a ConfigMap as API types were before v0.20.
type chatty struct{ corev1.ConfigMap }

func (c *chatty) DeepCopyObject() runtime.Object { return &chatty{*c.DeepCopy()} }

func (c *chatty) ValidateCreate() (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"create " + c.Name}, nil
}

func (c *chatty) ValidateUpdate(old runtime.Object) (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"update " + old.(*chatty).Name}, nil
}

func (c *chatty) ValidateDelete() (ctrladmission.Warnings, error) {
	return ctrladmission.Warnings{"delete " + c.Name}, nil
}

func TestTypesThatDefaultAndValidateThemselves(t *testing.T) {
	configMaps := admission.ForKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	got, err := controllerruntime.Defaulter(controllerruntime.DefaulterOf[*strict](), configMaps).Handle(t.Context(), request())
	if err != nil || !got.Allowed || len(got.Patch) != 1 || got.Patch[0].Path != "/data/defaulted" {
		t.Errorf("default: %+v, %v", got, err)
	}
	strictly := controllerruntime.Validator(controllerruntime.ValidatorOf[*strict](), configMaps)
	chattily := controllerruntime.Validator(controllerruntime.WarningValidatorOf[*chatty](), configMaps)
	for operation, want := range map[admissionv1.Operation]string{
		admissionv1.Create: "create n", admissionv1.Update: "update n", admissionv1.Delete: "delete n",
	} {
		for handler, allowed := range map[*admission.Handler]bool{&strictly: false, &chattily: true} {
			req := request()
			req.Operation = operation
			if operation != admissionv1.Create {
				req.OldObject = req.Object
			}
			if operation == admissionv1.Delete {
				req.Object = runtime.RawExtension{}
			}
			got, err := (*handler).Handle(t.Context(), req)
			if err != nil || got.Allowed != allowed {
				t.Fatalf("%s: %+v, %v", operation, got, err)
			}
			if allowed && !slices.Equal(got.Warnings, []string{want}) {
				t.Errorf("%s warns %q", operation, got.Warnings)
			}
			if !allowed && got.Status.Message != want && got.Status.Message != want+" to n" {
				t.Errorf("%s is refused with %q", operation, got.Status.Message)
			}
		}
	}
}
