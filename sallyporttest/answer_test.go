// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
)

// Package wire never produces such answers. This test shows that the checks would detect them.
func TestVerifyAnswerKnowsTheRulesOfTheAPIServer(t *testing.T) {
	kind := metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}
	type change = func(webhook *admission.Webhook, question *admissionv1.AdmissionReview, answer *admissionv1.AdmissionReview)
	for _, tc := range []struct {
		name   string
		change change
		want   string
	}{
		{"a good one", func(*admission.Webhook, *admissionv1.AdmissionReview, *admissionv1.AdmissionReview) {}, ""},
		{"another version", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) {
			a.APIVersion = "admission.k8s.io/v1beta1"
		}, "v1beta1"},
		{"another kind", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) { a.Kind = "Review" }, "a Review of"},
		{"another UID", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) { a.Response.UID = "2" }, `UID "2"`},
		{"no response", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) { a.Response = nil }, "no response"},
		{"a patch without a type", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) { a.Response.PatchType = nil }, "no type"},
		{"a patch of another type", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) {
			a.Response.PatchType = new(admissionv1.PatchType("Merge"))
		}, "no type"},
		{"a type without a patch", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) { a.Response.Patch = nil }, "and no patch"},
		{"a patch and a denial", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) { a.Response.Allowed = false }, "denial must not"},
		{"a patch from a validating webhook", func(w *admission.Webhook, _, _ *admissionv1.AdmissionReview) { w.Type = admission.TypeValidating }, "validating webhook must not"},
		{"a patch for a deletion", func(_ *admission.Webhook, q, _ *admissionv1.AdmissionReview) { q.Request.Object.Raw = nil }, "no object to apply it to"},
		{"an audit annotation with a long key", func(_ *admission.Webhook, _, a *admissionv1.AdmissionReview) {
			a.Response.AuditAnnotations = map[string]string{strings.Repeat("k", 64): ""}
		}, "audit annotation"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			webhook := admission.Webhook{Name: "a.example.com", Type: admission.TypeMutating}
			question := &admissionv1.AdmissionReview{TypeMeta: kind, Request: &admissionv1.AdmissionRequest{UID: "1", Object: runtime.RawExtension{Raw: []byte(`{}`)}}}
			answer := &admissionv1.AdmissionReview{TypeMeta: kind, Response: &admissionv1.AdmissionResponse{
				UID: "1", Allowed: true, Patch: []byte(`[]`), PatchType: new(admissionv1.PatchTypeJSONPatch),
			}}
			tc.change(&webhook, question, answer)
			body, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			patch, problems := verifyAnswer(webhook, question, body)
			got := strings.Join(problems, "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if tc.want == "" && patch == nil {
				t.Error("the patch is not returned")
			}
		})
	}
	if _, problems := verifyAnswer(admission.Webhook{}, &admissionv1.AdmissionReview{}, []byte("<html>")); len(problems) != 1 {
		t.Errorf("what is not JSON gives %q", problems)
	}
}
