// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport/admission"
)

// Defaulter takes a defaulter of controller-runtime into an application. It is
// [admission.MutateWith], and what a defaulter may have asked of controller-runtime
// besides works: RequestFromContext, and the logger in the context. Objects are decoded
// and patches made as by [admission.Mutate]. A CustomDefaulter needs [admission.As]
// with a prototype.
func Defaulter[T runtime.Object](defaulter ctrladmission.Defaulter[T], options ...admission.HandlerOption) admission.Handler {
	if defaulter == nil {
		return admission.MutateWith[T](nil, options...)
	}
	return admission.Named(fmt.Sprintf("%T", defaulter), admission.Mutate(func(ctx context.Context, object T) error {
		return defaulter.Default(called(ctx), object)
	}, append([]admission.HandlerOption{admission.ErrorsDeny()}, options...)...))
}

// Validator takes a validator of controller-runtime into an application. It is
// [admission.ValidateWith], and to it applies what [Defaulter] says. CONNECT, which
// controller-runtime admits without asking the validator, is refused in the rules of a
// definition.
func Validator[T runtime.Object](validator ctrladmission.Validator[T], options ...admission.HandlerOption) admission.Handler {
	if validator == nil {
		return admission.ValidateWith[T, ctrladmission.Warnings](nil, options...)
	}
	return admission.ValidateWith(inContext[T]{validator}, options...)
}

// inContext gives a validator the context that it expects.
type inContext[T runtime.Object] struct{ validator ctrladmission.Validator[T] }

func (v inContext[T]) ValidateCreate(ctx context.Context, object T) (ctrladmission.Warnings, error) {
	return v.validator.ValidateCreate(called(ctx), object)
}

func (v inContext[T]) ValidateUpdate(ctx context.Context, old, object T) (ctrladmission.Warnings, error) {
	return v.validator.ValidateUpdate(called(ctx), old, object)
}

func (v inContext[T]) ValidateDelete(ctx context.Context, object T) (ctrladmission.Warnings, error) {
	return v.validator.ValidateDelete(called(ctx), object)
}

// called is the context that controller-runtime would call with, from that of a typed
// handler.
func called(ctx context.Context) context.Context {
	req := ctrladmission.Request{AdmissionRequest: *admission.RequestFrom(ctx)}
	return ctrladmission.NewContextWithRequest(logged(ctx, &req), req)
}

func logged(ctx context.Context, req *ctrladmission.Request) context.Context {
	return controllerlog.IntoContext(ctx, ctrladmission.DefaultLogConstructor(controllerlog.Log.WithName("admission"), req))
}
