// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

func recorder(t *testing.T) *Recorder {
	t.Helper()
	r, err := New(settings(t, 1_000_000), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kept returns the bytes of all texts and raw values below a value.
func kept(value reflect.Value) (total int64) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			total = kept(value.Elem())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			total += kept(value.Field(i))
		}
	case reflect.String:
		total = int64(value.Len())
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return int64(value.Cap())
		}
		for i := range value.Len() {
			total += kept(value.Index(i)) + int64(value.Type().Elem().Size())
		}
	case reflect.Map:
		for key, element := range value.Seq2() {
			total += kept(key) + kept(element)
		}
	}
	return total
}

func TestLargeReviewsOfManyCallersTakeEightMebibytes(t *testing.T) {
	const callers, size = 12, 2_900_000
	text := strings.Repeat("b", size)
	for name, large := range map[string]func(*admissionv1.AdmissionRequest){
		"in the object":     func(req *admissionv1.AdmissionRequest) { req.Object.Raw = []byte(`{"a":"` + text + `"}`) },
		"in the old object": func(req *admissionv1.AdmissionRequest) { req.OldObject.Raw = []byte(`{"a":"` + text + `"}`) },
		"in the options":    func(req *admissionv1.AdmissionRequest) { req.Options.Raw = []byte(`{"a":"` + text + `"}`) },
		"in the user":       func(req *admissionv1.AdmissionRequest) { req.UserInfo.Username = text },
		"in the groups":     func(req *admissionv1.AdmissionRequest) { req.UserInfo.Groups = make([]string, size/3) },
		"in extra fields": func(req *admissionv1.AdmissionRequest) {
			req.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"a": make([]string, size/3)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			var running, done sync.WaitGroup
			running.Add(callers)
			handler := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
				running.Done()
				running.Wait() // all callers' copies exist at the same time
				if held := r.queue.bytes.Load(); held > queueBytes {
					t.Errorf("%d bytes are held during calls", held)
				}
				return admission.Allowed(), nil
			})
			for range callers {
				done.Go(func() {
					req := request("x")
					large(req)
					if answer, err := r.Handle(t.Context(), "a", req, handler); err != nil || !answer.Allowed {
						t.Errorf("the call failed: %v, %v", answer, err)
					}
				})
			}
			done.Wait()
			counted, waiting := r.queue.bytes.Load(), len(r.queue.samples)
			if dropped := testutil.ToFloat64(r.reviews.WithLabelValues("dropped")); int(dropped) != callers-waiting || waiting == callers {
				t.Errorf("%v dropped, %d of %d waiting", dropped, waiting, callers)
			}
			var held int64
			for range waiting {
				s := <-r.queue.samples
				held += kept(reflect.ValueOf(s))
				r.queue.release(s.bytes)
			}
			if held > counted || counted > queueBytes {
				t.Errorf("%d bytes are held, %d counted, of %d", held, counted, queueBytes)
			}
			if left := r.queue.bytes.Load(); left != 0 {
				t.Errorf("%d bytes are counted for nothing", left)
			}
		})
	}
}

// What a handler returns is part of a sample as well.
func TestLargeAnswersAreCounted(t *testing.T) {
	text := strings.Repeat("w", queueBytes)
	for name, tc := range map[string]struct {
		answer *admission.Response
		err    error
	}{
		"a patch":             {answer: admission.Patched(jsonpatch.Patch{{Op: "add", Path: "/a", Value: []byte(`"` + text + `"`)}})},
		"a message":           {answer: admission.DeniedResponse(text)},
		"a warning":           {answer: admission.Allowed().Warn(text)},
		"an audit annotation": {answer: &admission.Response{Allowed: true, AuditAnnotations: map[string]string{"a": text}}},
		"a cause":             {answer: admission.StatusResponse(metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: text}}}})},
		"an error":            {err: errors.New(text)},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			_, _ = r.Handle(t.Context(), "a", request("x"), admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
				return tc.answer, tc.err
			}))
			if dropped := testutil.ToFloat64(r.reviews.WithLabelValues("dropped")); dropped != 1 || len(r.queue.samples) != 0 || r.queue.bytes.Load() != 0 {
				t.Errorf("%v dropped, %d waiting, %d bytes held", dropped, len(r.queue.samples), r.queue.bytes.Load())
			}
		})
	}
}

// A sample that was written, or that could not be, leaves its room to others.
func TestRoomIsFreeAgain(t *testing.T) {
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	r := recorder(t)
	for _, object := range []string{`{"a":1}`, `not JSON`} {
		req := request("x")
		req.Object.Raw = []byte(object)
		if _, err := r.Handle(t.Context(), "a", req, allow); err != nil {
			t.Fatal(err)
		}
		r.record(<-r.queue.samples)
		if left := r.queue.bytes.Load(); left != 0 {
			t.Errorf("%s: %d bytes are still counted", object, left)
		}
	}
	if err := r.file.Close(); err != nil {
		t.Fatal(err)
	}
}
