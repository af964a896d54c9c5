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

	"github.com/sallyport-io/sallyport/admission"
)

func TestAHandlerThatOutlivesItsDeadlineIsInTheLog(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		err   error
		want  string // empty: nothing is logged
	}{
		"in time":        {time.Second, nil, ""},
		"late":           {3 * time.Second, nil, `the handler outlived the deadline of its call`},
		"late, at fault": {3 * time.Second, errors.New("x"), `no decision before the deadline of the call`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, admission.TypeValidating, func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
					time.Sleep(tc.takes) // whatever its context
					if tc.err != nil {
						return nil, tc.err
					}
					return admission.Allowed(), nil
				})
				// The API server gives up a little later, and closes the connection.
				gone, giveUp := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer giveUp()
				ctx, cancel := context.WithDeadline(gone, time.Now().Add(2*time.Second))
				defer cancel()
				s.answer(post(review(`{"uid":"u"}`)).WithContext(ctx))
				got := s.log.String()
				if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) || got != "" && !strings.Contains(got, "webhook=check.crontab.example.com") {
					t.Errorf("logged %q", got)
				}
				if tc.want != "" && tc.err == nil && !strings.Contains(got, "late=1s") {
					t.Errorf("logged %q", got)
				}
			})
		})
	}
}

func TestKeysOfAuditAnnotationsThatTheAPIServerDropsAreInTheLog(t *testing.T) {
	for key, want := range map[string]string{
		"mode": "", "my-key": "", "a.b_c": "", strings.Repeat("a", 63): "",
		"": "must be non-empty", "a/b": "must consist of alphanumeric", "what a key": "must consist of alphanumeric", strings.Repeat("a", 64): "63",
		"-a": "must consist of alphanumeric",
	} {
		resp := admission.Allowed()
		resp.AuditAnnotations = map[string]string{key: "s3cret", "fine": "s3cret"}
		s := serve(t, admission.TypeValidating, always(resp, nil))
		if answer := s.answer(post(review(`{"uid":"u"}`))); answer.StatusCode != http.StatusOK {
			t.Errorf("%q: HTTP %d", key, answer.StatusCode)
		}
		got := s.log.String()
		if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "s3cret") || got != "" && !strings.Contains(got, "webhook=check.crontab.example.com") {
			t.Errorf("%q: logged %q", key, got)
		}
	}
}
