// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/controllerruntime"
)

// numbers is an object with numbers that float64 cannot represent, or would format differently.
const numbers = `{"metadata":{"name":"n"},"spec":{"list":[{"n":9007199254740993}],"f":1.10,"u":18446744073709551615}}`

// toNumbers returns the answer to a request for numbers.
func toNumbers(t *testing.T, handler ctrladmission.Handler) string {
	t.Helper()
	req := request()
	req.Object = runtime.RawExtension{Raw: []byte(numbers)}
	got, err := controllerruntime.Handler(handler).Handle(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return string(got.Patch.AppendJSON(nil))
}

func TestNumbersInPatchesKeepTheirText(t *testing.T) {
	set := func(value any) ctrladmission.Response {
		return ctrladmission.Patched("", operation("add", "/spec/x", value))
	}
	ofBytes := func(patch string) ctrladmission.Response {
		response := ctrladmission.Allowed("")
		response.Patch = []byte(patch)
		return response
	}
	computed := func(old, changed string) ctrladmission.Response {
		return ctrladmission.PatchResponseFromRaw([]byte(numbers), []byte(strings.Replace(numbers, old, changed, 1)))
	}
	for name, tc := range map[string]struct {
		response ctrladmission.Response
		patch    string
	}{
		"an int64 of an operation":      {set(int64(9007199254740993)), `[{"op":"add","path":"/spec/x","value":9007199254740993}]`},
		"a text of an operation":        {set(json.Number("1.10")), `[{"op":"add","path":"/spec/x","value":1.10}]`},
		"a fraction of an operation":    {set(0.1), `[{"op":"add","path":"/spec/x","value":0.1}]`},
		"an integer of the bytes":       {ofBytes(`[{"op":"add","path":"/spec/x","value":9007199254740993}]`), `[{"op":"add","path":"/spec/x","value":9007199254740993}]`},
		"one beyond int64 of the bytes": {ofBytes(`[{"op":"add","path":"/spec/x","value":18446744073709551617}]`), `[{"op":"add","path":"/spec/x","value":18446744073709551617}]`},
		"a float of the bytes":          {ofBytes(`[{"op":"replace","path":"/spec/f","value":1.30}]`), `[{"op":"add","path":"/spec/f","value":1.30}]`},
		"a copy within the object":      {ofBytes(`[{"op":"copy","from":"/spec/u","path":"/spec/x"}]`), `[{"op":"add","path":"/spec/x","value":18446744073709551615}]`},
		"neighbours of the numbers":     {computed(`"name":"n"`, `"name":"m"`), `[{"op":"add","path":"/metadata/name","value":"m"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			if patch := toNumbers(t, answers(tc.response)); patch != tc.patch {
				t.Errorf("patch %s, want %s", patch, tc.patch)
			}
		})
	}
}
