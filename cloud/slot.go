// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// slot holds a handler once its dependencies are ready.
type slot struct {
	handler atomic.Pointer[admission.Handler]
}

var errNotReady = errors.New("the webhook is waiting for the cloud to be initialized or for its caches")

// Handle implements [admission.Handler]. Without a handler it makes the API server retry.
func (s *slot) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	handler := s.handler.Load()
	if handler == nil {
		return nil, admission.Unavailable(errNotReady, time.Second)
	}
	return (*handler).Handle(ctx, req)
}

// ready implements a check of /readyz.
func (s *slot) ready() error {
	if s.handler.Load() == nil {
		return errNotReady
	}
	return nil
}
