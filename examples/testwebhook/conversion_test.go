// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/sallyport-io/sallyport/serving"
)

func TestConversionAnswersAsKubernetesTestWebhookDoes(t *testing.T) {
	const meta = `"metadata":{"name":"one"}`
	object := func(version, fields string) string {
		return fmt.Sprintf(`{"apiVersion":"stable.example.com/%s","kind":"e2e-test-1234-crd",%s%s}`, version, meta, fields)
	}
	for _, tc := range []struct {
		name, in, to string
		want         string // the object; empty for a failure
	}{
		{"a port is cut off", object("v1", `,"hostPort":"localhost:8080"`), "v2", object("v2", `,"host":"localhost","port":"8080"`)},
		{"a port is put on", object("v2", `,"host":"localhost","port":"8080"`), "v1", object("v1", `,"hostPort":"localhost:8080"`)},
		{"a host alone", object("v2", `,"host":"localhost"`), "v1", object("v1", `,"hostPort":"localhost:"`)},
		{"a port alone", object("v2", `,"port":"8080"`), "v1", object("v1", `,"hostPort":":8080"`)},
		{"neither in v2", object("v2", `,"other":1`), "v1", object("v1", `,"other":1`)},
		{"nothing in v1", object("v1", `,"other":1`), "v2", object("v2", `,"other":1`)},
		{"no port to cut off", object("v1", `,"hostPort":"localhost"`), "v2", ""},
		{"too many parts", object("v1", `,"hostPort":"a:b:c"`), "v2", ""},
		{"no string", object("v1", `,"hostPort":1`), "v2", ""},
		{"no string either", object("v2", `,"host":1`), "v1", ""},
		{"a version that there is not", object("v1", `,"hostPort":"a:b"`), "v3", ""},
		{"from a version that there is not", object("v3", `,"hostPort":"a:b"`), "v1", ""},
		{"another group", strings.Replace(object("v1", ""), "stable.", "other.", 1), "v2", ""},
		{"no kind", strings.Replace(object("v1", ""), "e2e-test-1234-crd", "", 1), "v2", ""},
	} {
		for _, reviews := range []string{"v1", "v1beta1"} {
			t.Run(tc.name+", "+reviews, func(t *testing.T) {
				body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/%s","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"stable.example.com/%s","objects":[%s]}}`,
					reviews, tc.to, tc.in)
				code, answer := convertOver(newAnyKind(), body)
				var review apiextensionsv1.ConversionReview
				if err := json.Unmarshal([]byte(answer), &review); err != nil || code != http.StatusOK || review.Response == nil {
					t.Fatalf("got %d %s, %v", code, answer, err)
				}
				if review.APIVersion != "apiextensions.k8s.io/"+reviews || review.Response.UID != "u" {
					t.Errorf("got %s", answer)
				}
				if tc.want == "" {
					if review.Response.Result.Status != "Failure" || review.Response.Result.Message == "" {
						t.Errorf("got %s, want a failure", answer)
					}
					return
				}
				if len(review.Response.ConvertedObjects) != 1 || string(review.Response.ConvertedObjects[0].Raw) != tc.want {
					t.Errorf("got %s, want %s", answer, tc.want)
				}
			})
		}
	}
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	for _, body := range []string{"", "{", "{}", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`} {
		if code, answer := convertOver(newAnyKind(), body); code != http.StatusBadRequest {
			t.Errorf("%q is answered with %d %s", body, code, answer)
		}
	}
}

func TestKindsThatCallersMakeUpAreBounded(t *testing.T) {
	a := newAnyKind()
	for i := range 2 * maxKinds {
		if _, err := a.of(fmt.Sprintf("Kind%d", i)); err != nil {
			t.Fatal(err)
		}
		if len(a.kinds) > maxKinds {
			t.Fatalf("there are %d after %d", len(a.kinds), i+1)
		}
	}
}

func convertOver(kinds *anyKind, body string) (code int, answer string) {
	request := httptest.NewRequest(http.MethodPost, "/crdconvert?timeout=30s", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	kinds.answer(request.Context(), recorder, serving.Call{Request: request, Body: []byte(body)})
	return recorder.Code, recorder.Body.String()
}
