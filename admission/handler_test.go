// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

func TestRetryAfter(t *testing.T) {
	cause := errors.New("cache is not synced")
	for _, tc := range []struct {
		name  string
		err   error
		after time.Duration
		ok    bool
	}{
		{"no error", nil, 0, false},
		{"a fault that stays", cause, 0, false},
		{"a deadline is no promise that it passes", context.DeadlineExceeded, 0, false},
		{"a fault that passes", Unavailable(cause, 1500*time.Millisecond), 1500 * time.Millisecond, true},
		{"at once", Unavailable(cause, 0), 0, true},
		{"a time in the past is at once", Unavailable(cause, -time.Second), 0, true},
		{"wrapped", fmt.Errorf("pods: %w", Unavailable(cause, time.Second)), time.Second, true},
		{"joined", errors.Join(cause, Unavailable(cause, time.Second)), time.Second, true},
		{"the outer one counts", Unavailable(Unavailable(cause, time.Hour), time.Second), time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			after, ok := RetryAfter(tc.err)
			if after != tc.after || ok != tc.ok {
				t.Errorf("got %v, %v; want %v, %v", after, ok, tc.after, tc.ok)
			}
		})
	}
}

func TestUnavailableKeepsItsCause(t *testing.T) {
	cause := errors.New("cache is not synced")
	err := Unavailable(cause, time.Second)
	if !errors.Is(err, cause) {
		t.Error("the cause is not found")
	}
	if got := err.Error(); got != "unavailable: cache is not synced" {
		t.Errorf("got %q", got)
	}
}

func TestHandlerFuncCallsTheFunction(t *testing.T) {
	fault := errors.New("fault")
	req := &admissionv1.AdmissionRequest{UID: "u"}
	ctx := context.WithValue(t.Context(), contextKey{}, "value")
	var h Handler = HandlerFunc(func(gotCtx context.Context, got *admissionv1.AdmissionRequest) (*Response, error) {
		if got != req || gotCtx != ctx {
			t.Errorf("called with %v, %v", gotCtx, got)
		}
		return Allowed(), fault
	})
	resp, err := h.Handle(ctx, req)
	if resp == nil || !resp.Allowed || !errors.Is(err, fault) {
		t.Errorf("got %v, %v", resp, err)
	}
}

type contextKey struct{}
