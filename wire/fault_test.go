// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-io/sallyport/admission"
)

// Each kind of fault is logged ten times at once and then once a second, and
// takes nothing away from the others.
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
				time.Sleep(1)
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
	s := serve(t, admission.TypeMutating, always(admission.Allowed(), nil))
	for range 100 {
		s.answer(post(`{}`))
	}
	before := s.log.Len()
	s.webhook.Handler = always(nil, errors.New("broken"))
	s.answer(post(review(`{"uid":"u"}`)))
	s.webhook.Handler = always(nil, admission.Unavailable(errors.New("no cache"), 0))
	s.answer(post(review(`{"uid":"u"}`)))
	for _, want := range []string{"code=500", "code=503"} {
		if !strings.Contains(s.log.String()[before:], want) {
			t.Errorf("no %s behind a flood of callers' faults: %s", want, s.log.String()[before:])
		}
	}
}

func TestFaultUnwraps(t *testing.T) {
	cause := errors.New("cause")
	fault := &Fault{Code: http.StatusInternalServerError, Err: cause}
	if !errors.Is(fault, cause) || fault.Error() != "cause" {
		t.Errorf("got %v", fault)
	}
}
