// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// Each kind of fault is logged ten times at once, then once per second, without
// affecting other kinds.
func TestFaultsAreLoggedWithMeasure(t *testing.T) {
	broken := errors.New("broken")
	for name, call := range map[string]struct {
		body string
		err  error
		line string
	}{
		"the caller's":  {`{}`, nil, "code=400"},
		"passing ones":  {review(`{"uid":"u"}`), admission.Unavailable(broken, 0), "code=503"},
		"lasting ones":  {review(`{"uid":"u"}`), broken, "code=500"},
		"decisions not": {review(`{"uid":"u"}`), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, admission.TypeMutating, always(admission.Allowed(), call.err))
				want := func(lines int) {
					t.Helper()
					if call.line == "" {
						lines = 0
					}
					if got := strings.Count(s.log.String(), "\n"); got != lines || strings.Count(s.log.String(), call.line) < lines {
						t.Errorf("%d lines, want %d: %s", got, lines, s.log)
					}
				}
				flood := func() {
					for range 100 {
						s.answer(post(call.body))
					}
				}
				flood()
				want(10)
				time.Sleep(time.Second - 1)
				flood()
				want(10)
				time.Sleep(time.Nanosecond)
				flood()
				want(11)
				time.Sleep(time.Hour)
				flood()
				want(12)
			})
		})
	}
}

func TestFaultsOfOneKindDoNotHideOthersFromTheLog(t *testing.T) {
	good := review(`{"uid":"u"}`)
	kinds := map[string]struct {
		body string
		err  error
	}{
		"code=400": {body: `{}`},
		"code=500": {body: good, err: errors.New("broken")},
		"code=503": {body: good, err: admission.Unavailable(errors.New("no cache"), 0)},
	}
	for flood := range kinds {
		t.Run(flood, func(t *testing.T) {
			var err error
			s := serve(t, admission.TypeMutating, func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
				return nil, err
			})
			send := func(code string) {
				err = kinds[code].err
				s.answer(post(kinds[code].body))
			}
			for range 100 {
				send(flood)
			}
			s.log.Reset()
			for code := range kinds {
				if send(code); code != flood && !strings.Contains(s.log.String(), code) {
					t.Errorf("no %s behind a flood of %s: %s", code, flood, s.log)
				}
			}
		})
	}
}

func TestFaultUnwraps(t *testing.T) {
	cause := errors.New("cause")
	fault := &Fault{Code: http.StatusInternalServerError, Err: cause}
	if !errors.Is(fault, cause) || fault.Error() != "cause" {
		t.Errorf("got %v", fault)
	}
}

func TestTheLogAndNotTheAnswerSaysHowAnErrorWouldDeny(t *testing.T) {
	typed := admission.Validate(func(context.Context, *corev1.Pod) error { return errors.New("spec.a is wrong") })
	s := serve(t, admission.TypeValidating, typed.Handle)
	resp := s.answer(post(review(`{"uid":"u","operation":"CREATE","object":{"kind":"Pod"}}`)))
	if body := bodyOf(t, resp); resp.StatusCode != http.StatusInternalServerError || strings.Contains(body, "admission.Deny") {
		t.Errorf("HTTP %d: %s", resp.StatusCode, body)
	}
	if got := s.log.String(); !strings.Contains(got, `hint="`) || !strings.Contains(got, "admission.Deny(err)") || !strings.Contains(got, "webhook=check.crontab.example.com") {
		t.Errorf("logged %s", got)
	}
}
