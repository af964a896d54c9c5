// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
)

func TestAStatusInvalidOfTheRequestsKindIsADenial(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	list := field.ErrorList{field.Invalid(field.NewPath("spec", "a"), 1, "must be 2"), field.Required(field.NewPath("spec", "b"), "")}
	internal := slices.Concat(list, field.ErrorList{field.InternalError(field.NewPath("spec", "c"), errors.New("no answer"))})
	ofPod := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", list)
	for _, tc := range []struct {
		name   string
		err    error
		denies bool
		hint   string // of a fault
	}{
		{"NewInvalid", ofPod, true, ""},
		{"wrapped", fmt.Errorf("checking: %w", ofPod), true, ""},
		{"joined with field errors", errors.Join(ofPod, list[0]), true, ""},
		{"joined with any error", errors.Join(ofPod, errors.New("x")), false, "apierrors.NewInvalid"},
		{"about a kind that a client has sent", apierrors.NewInvalid(schema.GroupKind{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}, "", list), false, "of the request's kind Pod"},
		{"about the kind of this name in another group", apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Pod"}, "a", list), false, "admission.Deny(err)"},
		{"without details", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid}}, false, "admission.Deny(err)"},
		{"with an internal error", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", internal), false, ""},
		{"an internal field error", internal[2], false, ""},
		{"an internal error among field errors", internal.ToAggregate(), false, ""},
		{"Forbidden, as a client gets it", apierrors.NewForbidden(pods, "a", errors.New("x")), false, "admission.Deny(err)"},
		{"Conflict, as a client gets it", apierrors.NewConflict(pods, "a", errors.New("x")), false, "admission.Deny(err)"},
		{"any other error", errors.New("x"), false, "admission.Deny(err)"},
		{"an API server that is away", apierrors.NewServiceUnavailable("x"), false, ""},
		{"marked as a fault", admission.Fault(ofPod), false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fail := func(context.Context, *corev1.Pod) error { return tc.err }
			for _, handler := range []admission.Handler{admission.Mutate(fail), admission.Validate(fail)} {
				resp, err := handler.Handle(t.Context(), podRequest(admissionv1.Create))
				if !tc.denies {
					var hinted interface{ Hint() string }
					hint := ""
					if errors.As(err, &hinted) {
						hint = hinted.Hint()
					}
					if err == nil || err.Error() != tc.err.Error() || (hint != "") != (tc.hint != "") || !strings.Contains(hint, tc.hint) {
						t.Errorf("got %+v, %v, hint %q; want a fault with the hint %q", resp, err, hint, tc.hint)
					}
					continue
				}
				if err != nil || resp.Allowed {
					t.Fatalf("got %+v, %v; want a denial", resp, err)
				}
				status := resp.Status
				if status.Code != 422 || status.Reason != metav1.StatusReasonInvalid || status.Details == nil || status.Details.Kind != "Pod" ||
					len(status.Details.Causes) != 2 || status.Details.Causes[1].Field != "spec.b" {
					t.Errorf("got %+v with %+v", status, status.Details)
				}
			}
		})
	}
}

func TestInternalFieldErrorsAreFaultsWithErrorsDenyToo(t *testing.T) {
	internal := field.InternalError(field.NewPath("spec"), errors.New("no answer"))
	for name, err := range map[string]error{
		"a field error":       internal,
		"among field errors":  field.ErrorList{field.Required(field.NewPath("a"), ""), internal}.ToAggregate(),
		"a cause of a status": apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{internal}),
	} {
		fail := func(context.Context, *corev1.Pod) error { return err }
		if resp, got := admission.Validate(fail, admission.ErrorsDeny()).Handle(t.Context(), podRequest(admissionv1.Create)); got == nil || got.Error() != err.Error() {
			t.Errorf("%s: got %+v, %v; want a fault", name, resp, got)
		}
	}
}

func TestAStatusOfTheKindThatTheUserSentIsADenial(t *testing.T) {
	req := podRequest(admissionv1.Create)
	req.RequestKind = &metav1.GroupVersionKind{Group: "old.example.com", Version: "v1", Kind: "Pod"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "old.example.com", Kind: "Pod"}, "a", field.ErrorList{field.Required(field.NewPath("a"), "")})
	resp, err := admission.Validate(func(context.Context, *corev1.Pod) error { return invalid }).Handle(t.Context(), req)
	if err != nil || resp.Allowed || resp.Status.Code != 422 {
		t.Errorf("got %+v, %v", resp, err)
	}
}
