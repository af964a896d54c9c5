// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

const testUID = "705ab4f5-6393-11e8-b7cc-42010a800002"

func TestAnswersSayWhatWasMeant(t *testing.T) {
	patch := jsonpatch.Patch{
		{Op: jsonpatch.Add, Path: "/metadata/labels/a~1b", Value: []byte(`"<é\n>"`)},
		{Op: jsonpatch.Remove, Path: "/spec/containers/0"},
	}
	patched := []byte(`[{"op":"add","path":"/metadata/labels/a~1b","value":"<é\n>"},{"op":"remove","path":"/spec/containers/0"}]`)
	jsonPatch := admissionv1.PatchTypeJSONPatch
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "CronTab"}, "nightly", field.ErrorList{
		field.Required(field.NewPath("spec", "schedule"), "say <when> & how often"),
	}).Status()

	for name, tc := range map[string]struct {
		uid  types.UID
		resp *admission.Response
		want admissionv1.AdmissionResponse
	}{
		"allowed": {
			resp: admission.Allowed(),
			want: admissionv1.AdmissionResponse{Allowed: true},
		},
		"a uid that must be quoted": {
			uid:  "\"\\\n\u2028<é😀",
			resp: admission.Allowed(),
			want: admissionv1.AdmissionResponse{Allowed: true},
		},
		"allowed with a status, which is left out": {
			resp: &admission.Response{Allowed: true, Status: &metav1.Status{Message: "ok", Code: 200}},
			want: admissionv1.AdmissionResponse{Allowed: true},
		},
		"a patch comes with its type": {
			resp: admission.Patched(patch),
			want: admissionv1.AdmissionResponse{Allowed: true, Patch: patched, PatchType: &jsonPatch},
		},
		"an empty patch is left out, as is its type": {
			resp: admission.Patched(jsonpatch.Patch{}),
			want: admissionv1.AdmissionResponse{Allowed: true},
		},
		"denied": {
			resp: admission.DeniedResponse("no"),
			want: admissionv1.AdmissionResponse{Result: &metav1.Status{Status: "Failure", Code: 403, Reason: "Forbidden", Message: "no"}},
		},
		"denied without a word": {
			resp: &admission.Response{},
			want: admissionv1.AdmissionResponse{},
		},
		"denied with a patch, which is left out": {
			resp: &admission.Response{Patch: patch, Status: &metav1.Status{Status: "Failure", Code: 409}},
			want: admissionv1.AdmissionResponse{Result: &metav1.Status{Status: "Failure", Code: 409}},
		},
		"denied with code, reason and causes": {
			resp: admission.StatusResponse(invalid),
			want: admissionv1.AdmissionResponse{Result: &invalid},
		},
		"denied with a code that the API server raises": {
			resp: admission.StatusResponse(metav1.Status{Code: 200}),
			want: admissionv1.AdmissionResponse{Result: &metav1.Status{Status: "Failure", Code: 200}},
		},
		"warnings and audit annotations when allowed": {
			resp: &admission.Response{Allowed: true, Warnings: []string{"b", "a", "b"}, AuditAnnotations: map[string]string{"k": "v", "a": ""}},
			want: admissionv1.AdmissionResponse{
				Allowed: true, Warnings: []string{"b", "a", "b"}, AuditAnnotations: map[string]string{"k": "v", "a": ""},
			},
		},
		"warnings and audit annotations when denied": {
			resp: &admission.Response{Warnings: []string{"\"quoted\" <é>"}, AuditAnnotations: map[string]string{"k\n": "v\t\"é"}},
			want: admissionv1.AdmissionResponse{Warnings: []string{"\"quoted\" <é>"}, AuditAnnotations: map[string]string{"k\n": "v\t\"é"}},
		},
		"a patch with all the rest": {
			resp: &admission.Response{
				Allowed: true, Patch: patch, Warnings: []string{"w"}, AuditAnnotations: map[string]string{"k": "v"},
				Origins: []admission.Origin{{Path: "/spec", Source: "never on the wire"}},
			},
			want: admissionv1.AdmissionResponse{
				Allowed: true, Patch: patched, PatchType: &jsonPatch, Warnings: []string{"w"}, AuditAnnotations: map[string]string{"k": "v"},
			},
		},
		"empty lists and maps are left out": {
			resp: &admission.Response{Allowed: true, Warnings: []string{}, AuditAnnotations: map[string]string{}},
			want: admissionv1.AdmissionResponse{Allowed: true},
		},
		"what is not UTF-8 is replaced": {
			resp: &admission.Response{Allowed: true, Warnings: []string{"a\xffb"}, AuditAnnotations: map[string]string{"k": "\xff"}},
			want: admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"a\ufffdb"}, AuditAnnotations: map[string]string{"k": "\ufffd"}},
		},
	} {
		for _, version := range []string{admissionV1, admissionV1beta1} {
			t.Run(name+", "+version, func(t *testing.T) {
				if tc.uid == "" {
					tc.uid = testUID
				}
				tc.want.UID = tc.uid
				answer, err := encodeReview(new([]byte), version, tc.uid, tc.resp)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&tc.want, decodeAnswer(t, version, answer)); diff != "" {
					t.Errorf("%s\n%s", diff, answer)
				}
			})
		}
	}
}

// decodeAnswer decodes the answer with the types of its version, shares no code with
// encodeReview, and checks what the API server checks of every answer.
func decodeAnswer(t *testing.T, version string, answer []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	var got admissionv1.AdmissionReview
	switch version {
	case admissionV1:
		decodeStrictly(t, answer, &got)
	case admissionV1beta1:
		var beta admissionv1beta1.AdmissionReview
		decodeStrictly(t, answer, &beta)
		if beta.Response == nil {
			t.Fatalf("no response: %s", answer)
		}
		got.TypeMeta = beta.TypeMeta
		got.Response = &admissionv1.AdmissionResponse{
			UID: beta.Response.UID, Allowed: beta.Response.Allowed, Result: beta.Response.Result, Patch: beta.Response.Patch,
			PatchType:        (*admissionv1.PatchType)(beta.Response.PatchType),
			AuditAnnotations: beta.Response.AuditAnnotations, Warnings: beta.Response.Warnings,
		}
	default:
		t.Fatalf("version %q", version)
	}
	if got.APIVersion != version || got.Kind != "AdmissionReview" || got.Request != nil || got.Response == nil {
		t.Fatalf("got %s", answer)
	}
	if (got.Response.Patch == nil) != (got.Response.PatchType == nil) {
		t.Errorf("a patch without its type, or the other way round: %s", answer)
	}
	if got.Response.Allowed && got.Response.Result != nil {
		t.Errorf("a status, though allowed: %s", answer)
	}
	for _, warning := range got.Response.Warnings {
		if _, err := utilnet.NewWarningHeader(299, "-", warning); err != nil {
			t.Errorf("the API server drops the warning %q: %v", warning, err)
		}
	}
	return got.Response
}

// decodeStrictly refuses unknown names, duplicate names and invalid UTF-8, and requires
// encoding/json to read the same.
func decodeStrictly[T any](t *testing.T, data []byte, to *T) {
	t.Helper()
	if err := jsonv2.Unmarshal(data, to, jsonv2.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	var again T
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(*to, again); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersOnTheWire(t *testing.T) {
	for name, tc := range map[string]struct {
		resp *admission.Response
		want string
	}{
		"allowed": {
			admission.Allowed(),
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true}}`,
		},
		"patched": {
			admission.Patched(jsonpatch.Patch{{Op: jsonpatch.Remove, Path: "/a"}}),
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true,` +
				`"patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=","patchType":"JSONPatch"}}`,
		},
		"denied, with audit annotations sorted and warnings in order": {
			(&admission.Response{
				Status: &metav1.Status{Status: "Failure", Message: "no", Code: 403}, AuditAnnotations: map[string]string{"b": "1", "a": "2", "c": "3"},
			}).Warn("z", "y"),
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":false,` +
				`"status":{"metadata":{},"status":"Failure","message":"no","code":403},` +
				`"auditAnnotations":{"a":"2","b":"1","c":"3"},"warnings":["z","y"]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encodeReview(new([]byte), admissionV1, "u", tc.resp)
			if err != nil || string(got) != tc.want {
				t.Errorf("error %v\ngot  %s\nwant %s", err, got, tc.want)
			}
		})
	}
}

func TestWarningsLoseControlCharacters(t *testing.T) {
	for given, want := range map[string]string{
		"line one\nline two":     "line one line two",
		"\ta\r\n":                " a  ",
		"null \x00, delete \x7f": "null  , delete  ",
		"next line \u0085":       "next line  ",
		"plain é 😀 \u2028":       "plain é 😀 \u2028",
		"cut \xe2\x82":           "cut \ufffd\ufffd",
		"":                       "",
	} {
		t.Run(fmt.Sprintf("%q", given), func(t *testing.T) {
			resp := admission.Allowed().Warn(given)
			answer, err := encodeReview(new([]byte), admissionV1, testUID, resp)
			if err != nil {
				t.Fatal(err)
			}
			if got := decodeAnswer(t, admissionV1, answer).Warnings; len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if resp.Warnings[0] != given {
				t.Error("the handler's response was changed")
			}
		})
	}
}

func TestTheSameDecisionGivesTheSameBytes(t *testing.T) {
	var first string
	for range 50 {
		// A new map each time, filled in a different order.
		resp := admission.Allowed().Warn("w")
		resp.AuditAnnotations = map[string]string{}
		for _, key := range strings.Fields("one two three four five six seven eight nine ten") {
			resp.AuditAnnotations[key] = "v"
		}
		answer, err := encodeReview(new([]byte), admissionV1, testUID, resp)
		switch {
		case err != nil:
			t.Fatal(err)
		case first == "":
			first = string(answer)
		case string(answer) != first:
			t.Fatalf("got  %s\nwas  %s", answer, first)
		}
	}
}

// TestAnAnswerIsWrittenIntoBuffersOfItsSize: a buffer that grows is copied, and leaves
// its old memory to the garbage collector.
func TestAnAnswerIsWrittenIntoBuffersOfItsSize(t *testing.T) {
	const elements, size = 300, 10 << 10
	resp := admission.Allowed().Warn(strings.Repeat("w", 200_000))
	resp.AuditAnnotations = map[string]string{"applied": strings.Repeat("a", 200_000)}
	value := []byte(`"` + strings.Repeat("x", size) + `"`)
	for range elements {
		resp.Patch = append(resp.Patch, jsonpatch.Operation{Op: jsonpatch.Add, Path: "/spec/containers/0/env/-", Value: value})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer, err := encodeReview(new([]byte), "admission.k8s.io/v1", "uid", resp)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	patch := resp.Patch.AppendJSON(nil)
	if took, most := int(after.TotalAlloc-before.TotalAlloc), (len(patch)+len(answer))*11/10; took > most {
		t.Errorf("%d bytes allocated for a patch of %d bytes and an answer of %d", took, len(patch), len(answer))
	}
}
