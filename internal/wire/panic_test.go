// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sallyport-io/sallyport/admission"
)

func panicOf(call func()) (value any) {
	defer func() { value = recover() }()
	call()
	return nil
}

func TestAPanicsTextIsPassedOnWithoutValuesOfObjects(t *testing.T) {
	// aHVudGVyMg== is hunter2
	const object = `{"kind":"Secret","metadata":{"annotations":{"example.com/size":"s3cret size","quote":"a\"b\\c"}},"data":{"password":"aHVudGVyMg=="},"list":["in a list"]}`
	inner := errors.New("inner")
	for _, tc := range []struct {
		name  string
		value any
		want  string
	}{
		{"a string", "boom", "boom"},
		{"an error", fmt.Errorf("at: %w", inner), "at: inner"},
		{"another type", struct{ s string }{"hunter2"}, "value of type struct { s string }"},
		{"a value of an annotation", "parsing s3cret size", "parsing [value of an object]"},
		{"a quoted value", fmt.Sprintf("parsing %q", `a"b\c`), `parsing "[value of an object]"`},
		{"a key", "no example.com/size", "no [value of an object]"},
		{"a value in a list", "bad in a list.", "bad [value of an object]."},
		{"decoded data", "password is hunter2", "[value of an object] is [value of an object]"},
		{"what a library says of its argument", panicOf(func() { resource.MustParse("s3cret size") }), "cannot parse '[value of an object]': quantities must match the regular expression"},
		{"a dump", strings.Repeat("x", maxSearched) + "s3cret size", fmt.Sprintf("value of type string with %d bytes", maxSearched+len("s3cret size"))},
		{"a long one", strings.Repeat("é", 1000), strings.Repeat("é", maxPanicText/2) + "…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, admission.TypeValidating, func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) { panic(tc.value) })
			for _, field := range []string{"object", "oldObject"} {
				value := panicOf(func() { s.answer(post(review(`{"uid":"u","operation":"UPDATE","` + field + `":` + object + `}`))) })
				named, ok := value.(interface{ Panicked() (webhook, text string) })
				if !ok {
					t.Fatalf("panicked with %v", value)
				}
				if webhook, text := named.Panicked(); webhook != "check.crontab.example.com" || !strings.HasPrefix(text, tc.want) || tc.want != text && tc.name != "what a library says of its argument" {
					t.Errorf("%s: got %q", webhook, text)
				}
				if err, ok := tc.value.(error); ok && !errors.Is(value.(error), err) {
					t.Error("the error of the panic is not in the one passed on")
				}
			}
		})
	}
	s := serve(t, admission.TypeValidating, func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		panic(http.ErrAbortHandler)
	})
	if value := panicOf(func() { s.answer(post(review(`{"uid":"u"}`))) }); value != any(http.ErrAbortHandler) {
		t.Errorf("an aborted call panicked with %v", value)
	}
}
