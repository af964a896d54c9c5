// SPDX-License-Identifier: Apache-2.0

// Package admission defines admission webhooks: a [Handler] that answers one request, a
// [Response], and a [Webhook] that defines when the API server calls it. It needs neither
// HTTP nor a Kubernetes client.
package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// Handler answers one admission request.
//
// A returned Response is a decision, and final: failurePolicy does not apply to
// it, not even if it denies. A returned error is a fault of the webhook itself, unless
// [Deny] marks it: the API server gets an HTTP error, and the failurePolicy of the
// webhook's configuration decides. A handler that returns neither is at fault.
//
// The context ends at the deadline of the API server minus a margin, or when its connection
// closes. The request, including the bytes of its objects, must not be modified. Those
// bytes are JSON without duplicate names and invalid UTF-8, within the server's nesting
// limit, so handlers need not check that again. A handler must be safe for concurrent use
// and without side effects (None).
//
// A handler may have two more methods, which wrappers should pass on. Problems() error
// has what its constructor could not return, and Operations()
// []admissionregistrationv1.OperationType what it answers: [Webhook.Problems] reports
// these problems, and rules with other operations.
type Handler interface {
	Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*Response, error) {
	return f(ctx, req)
}

// Unavailable marks a transient fault: a cache that is not synced yet, an unresponsive
// dependency. It makes the API server retry after the given time, rounded up to whole
// seconds, on another connection, so that another replica may answer, up to ten times
// within the webhook's timeout. Err must not be nil.
func Unavailable(err error, retryAfter time.Duration) error {
	return &unavailableError{err: err, retryAfter: max(retryAfter, 0)}
}

// RetryAfter reports whether err is a transient fault, see [Unavailable], and when to
// retry.
func RetryAfter(err error) (time.Duration, bool) {
	var u *unavailableError
	if !errors.As(err, &u) {
		return 0, false
	}
	return u.retryAfter, true
}

type unavailableError struct {
	err        error
	retryAfter time.Duration
}

func (e *unavailableError) Error() string { return fmt.Sprintf("unavailable: %v", e.err) }
func (e *unavailableError) Unwrap() error { return e.err }

// Response is nil: a denial that the error wraps is none.
func (e *unavailableError) Response(*admissionv1.AdmissionRequest) *Response { return nil }
