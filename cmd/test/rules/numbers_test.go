// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"context"
	"strings"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/controllerruntime"
)

// numbers is an object with numbers that float64 cannot represent, or would format differently.
const numbers = `{"metadata":{"name":"n"},"spec":{"list":[{"n":9007199254740993}],"f":1.10,"u":18446744073709551615}}`

// The module of this test requires a gomodules.xyz/jsonpatch that reads numbers as json.Number: 2.4.0, for which
// controller-runtime asks, rounds them to float64 before the adapter sees them.
var _ jsonpatch.JsonPatchOperation

func patchOf(t *testing.T, handler ctrladmission.Handler) string {
	t.Helper()
	req := &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Numbers"},
		Object: runtime.RawExtension{Raw: []byte(numbers)}}
	got, err := controllerruntime.Handler(handler).Handle(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return string(got.Patch.AppendJSON(nil))
}

func TestNumbersThatControllerRuntimeComparesKeepTheirText(t *testing.T) {
	computed := func(old, changed string) ctrladmission.Response {
		return ctrladmission.PatchResponseFromRaw([]byte(numbers), []byte(strings.Replace(numbers, old, changed, 1)))
	}
	for name, tc := range map[string]struct {
		response ctrladmission.Response
		patch    string
	}{
		"a neighbour that rounds alike": {computed("9007199254740993", "9007199254740992"), `[{"op":"add","path":"/spec/list/0/n","value":9007199254740992}]`},
		"one beyond int64 of documents": {computed("18446744073709551615", "18446744073709551614"), `[{"op":"add","path":"/spec/u","value":18446744073709551614}]`},
		"a value of documents":          {computed(`{"n"`, `{"x":{"y":[1.20,9007199254740993]},"n"`), `[{"op":"add","path":"/spec/list/0/x","value":{"y":[1.20,9007199254740993]}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			handler := ctrladmission.HandlerFunc(func(context.Context, ctrladmission.Request) ctrladmission.Response { return tc.response })
			if patch := patchOf(t, handler); patch != tc.patch {
				t.Errorf("patch %s, want %s", patch, tc.patch)
			}
		})
	}
}

func TestNumbersThatSeveralHandlersPatchKeepTheirText(t *testing.T) {
	changed := strings.Replace(numbers, "9007199254740993", "9007199254740995", 1)
	several := ctrladmission.MultiMutatingHandler(ctrladmission.HandlerFunc(func(context.Context, ctrladmission.Request) ctrladmission.Response {
		return ctrladmission.PatchResponseFromRaw([]byte(numbers), []byte(changed))
	}))
	if patch := patchOf(t, &ctrladmission.Webhook{Handler: several}); patch != `[{"op":"add","path":"/spec/list/0/n","value":9007199254740995}]` {
		t.Errorf("patch %s", patch)
	}
}
