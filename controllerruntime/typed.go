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

// Defaulter adapts a defaulter of controller-runtime to an application. It is
// [admission.MutateWith] with the context that controller-runtime provides: RequestFromContext
// and the logger work. It decodes objects and creates patches like [admission.Mutate]. A
// CustomDefaulter needs [admission.As] with a prototype.
func Defaulter[T runtime.Object](defaulter ctrladmission.Defaulter[T], options ...admission.HandlerOption) admission.Handler {
	if defaulter == nil {
		return admission.MutateWith[T](nil, options...)
	}
	return admission.Named(fmt.Sprintf("%T", defaulter), admission.Mutate(func(ctx context.Context, object T) error {
		return defaulter.Default(called(ctx), object)
	}, append([]admission.HandlerOption{admission.ErrorsDeny()}, options...)...))
}

// Validator adapts a validator of controller-runtime to an application. It is
// [admission.ValidateWith] with the same context as [Defaulter]. Rules with CONNECT are
// invalid: controller-runtime admits it without calling the validator.
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

// called returns the context that controller-runtime would pass, given the context of a typed
// handler.
func called(ctx context.Context) context.Context {
	req := ctrladmission.Request{AdmissionRequest: *admission.RequestFrom(ctx)}
	return ctrladmission.NewContextWithRequest(logged(ctx, &req), req)
}

func logged(ctx context.Context, req *ctrladmission.Request) context.Context {
	return controllerlog.IntoContext(ctx, ctrladmission.DefaultLogConstructor(controllerlog.Log.WithName("admission"), req))
}
