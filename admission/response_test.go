// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

func TestResponses(t *testing.T) {
	patch := jsonpatch.Patch{{Op: jsonpatch.Remove, Path: "/a"}}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "CronTab"}, "nightly", field.ErrorList{
		field.Required(field.NewPath("spec", "schedule"), "say when"),
	})
	invalidStatus := invalid.Status()
	for _, tc := range []struct {
		name string
		got  *Response
		want Response
	}{
		{"allowed has no status", Allowed(), Response{Allowed: true}},
		{"patched is allowed", Patched(patch), Response{Allowed: true, Patch: patch}},
		{"an empty patch is the same as allowed", Patched(nil), *Allowed()},
		{"denied is 403 Forbidden", DeniedResponse("100% no"), Response{Status: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "100% no",
		}}},
		{"a bad request is 400", BadRequest("no %s", "pod"), Response{Status: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "no pod",
		}}},
		{"the status of an API error is kept, with its causes", StatusResponse(invalidStatus), Response{Status: &invalidStatus}},
		{"a status that says success still fails", StatusResponse(metav1.Status{Status: metav1.StatusSuccess, Code: 422}), Response{
			Status: &metav1.Status{Status: metav1.StatusFailure, Code: 422},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !reflect.DeepEqual(*tc.got, tc.want) {
				t.Errorf("got %+v %+v\nwant %+v %+v", tc.got, tc.got.Status, tc.want, tc.want.Status)
			}
		})
	}
	if len(invalidStatus.Details.Causes) != 1 || invalidStatus.Code != http.StatusUnprocessableEntity {
		t.Errorf("the API error is not what this test is about: %+v", invalidStatus)
	}
}

func TestResponsesAreNotShared(t *testing.T) {
	Allowed().Warn("once")
	if again := Allowed(); len(again.Warnings) > 0 {
		t.Errorf("a warning of another answer: %q", again.Warnings)
	}
	DeniedResponse("a").Status.Message = "b"
	if again := DeniedResponse("a"); again.Status.Message != "a" {
		t.Errorf("a message of another answer: %q", again.Status.Message)
	}
}

func TestResponseWarnAddsAndReturnsTheResponse(t *testing.T) {
	r := DeniedResponse("no")
	if got := r.Warn("a").Warn().Warn("b", "c"); got != r {
		t.Error("another response")
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(r.Warnings, want) || r.Allowed {
		t.Errorf("got %q, allowed %v", r.Warnings, r.Allowed)
	}
}
