// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What becomes of the error that a typed handler returns:
//
//	error                                           answer
//	-----                                           ------
//	field errors only (field.ErrorList.ToAggregate) denied with 422 Invalid, a cause for each
//	apierrors.NewInvalid of the request's kind      denied with its code, reason and details
//	field.InternalError, in either                  fault
//	Deny of an API status (apierrors.NewConflict)   denied with its code, reason and details
//	Deny of any other, Denyf                        denied with 403 Forbidden and the error's text
//	marked by Fault or Unavailable                  fault: the failurePolicy applies
//	any other                                       fault
//
// A denial is explicit. An error of a client, such as an API status, a refused connection
// or a cache that is not started, is an outage and says nothing about the object: a handler
// that returns it is at fault. The exception is a status Invalid of the request's kind,
// which only the handler itself makes. Forbidden and Conflict need [Deny]: the API server
// answers a client that lacks a right, or writes a stale object, with the same status, even
// for the object of the request. Wrapped and joined errors are inspected; a fault among
// denials is a fault. Mutators and validators behave alike. [ErrorsDeny] is for handlers
// written for controller-runtime.

// Deny marks an error of a handler as a denial of the request, which is final: no
// failurePolicy applies. An API status in the error (apierrors.NewForbidden) gives code,
// reason and details; without one the code is 403 Forbidden, and the error's text the
// message. Nil stays nil. In a typed handler, field errors and apierrors.NewInvalid for the
// kind of the request deny without the mark. [DeniedResponse] is the response of a handler
// that is not typed.
func Deny(err error) error {
	if err == nil {
		return nil
	}
	return &denial{err}
}

// Denyf is [Deny] with a formatted error. The message should name the object, the field and
// the remedy, and never a value.
func Denyf(format string, args ...any) error { return Deny(fmt.Errorf(format, args...)) }

type denial struct{ err error }

func (e *denial) Error() string { return e.err.Error() }
func (e *denial) Unwrap() error { return e.err }

// Response is what servers answer if a handler that is not typed returns the error. It is
// nil if that is a fault in spite of the mark.
func (e *denial) Response(req *admissionv1.AdmissionRequest) *Response {
	if faulty(e) {
		return nil
	}
	return denied(e, req)
}

// marked returns the response of an error that is marked as a denial, or nil.
func marked(err error, req *admissionv1.AdmissionRequest) *Response {
	for ; err != nil; err = errors.Unwrap(err) {
		if mark, ok := err.(interface {
			Response(req *admissionv1.AdmissionRequest) *Response
		}); ok {
			return mark.Response(req)
		}
	}
	return nil
}

// Fault marks an error of a typed handler as a fault of the webhook itself: an unresponsive
// dependency, a bug. The API server gets an HTTP error and the failurePolicy of the
// webhook's configuration applies. Errors that are not denials are faults anyway; the mark
// turns denials into faults, and is needed with [ErrorsDeny]. Nil stays nil. See
// [Unavailable] for transient faults.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	return &faultError{err}
}

type faultError struct{ err error }

func (e *faultError) Error() string { return e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// Response is nil: a denial that the error wraps is none.
func (e *faultError) Response(*admissionv1.AdmissionRequest) *Response { return nil }

// faulty tells whether an error is a fault whatever it wraps.
func faulty(err error) bool {
	var fault *faultError
	_, passes := RetryAfter(err)
	return passes || errors.As(err, &fault) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// ErrorsDeny treats errors like controller-runtime, whose defaulters and validators deny by
// returning an error: a denial without [Deny], with the code of an API status or 403
// Forbidden. Outages stay faults: an API status 401, 403, 404, 410, 429 or from 500, an
// error of the network, of a context, or of controller-runtime's cache, and
// field.InternalError. To deny with one of
// these codes takes [Deny]. [MutateWith] and [ValidateWith] have this option.
func ErrorsDeny() HandlerOption { return func(o *handlerOptions) { o.errorsDeny = true } }

// decide turns the error of a typed handler into its answer, see above.
func (c *call) decide(t *target, err error) (*Response, error) {
	switch {
	case faulty(err):
		return nil, err
	case !denies(err, c.req, t.errorsDeny):
		return nil, c.undecided(err)
	}
	return c.response(denied(err, c.req)), nil
}

// denied is the response that an error stands for.
func denied(err error, req *admissionv1.AdmissionRequest) *Response {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		decision := status.Status()
		if decision.Message == "" {
			decision.Message = err.Error()
		}
		return StatusResponse(decision)
	}
	if list, ok := fieldErrors(err); ok {
		kind := schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
		return StatusResponse(apierrors.NewInvalid(kind, req.Name, list).ErrStatus)
	}
	return DeniedResponse(err.Error())
}

// denies tells whether an error, or all that it joins, is a denial of the request. With
// anyError it is unless it tells of an outage.
func denies(err error, req *admissionv1.AdmissionRequest, anyError bool) bool {
	switch typed := any(err).(type) {
	case *denial, *readError:
		return true
	case *field.Error:
		return typed.Type != field.ErrorTypeInternal
	case interface{ Errors() []error }: // an Aggregate of apimachinery
		return allDeny(typed.Errors(), req, anyError)
	case interface{ Unwrap() []error }:
		return allDeny(typed.Unwrap(), req, anyError)
	case interface{ Unwrap() error }:
		if inner := typed.Unwrap(); inner != nil && !outage(err) {
			return denies(inner, req, anyError)
		}
	}
	return (anyError || invalidates(err, req)) && !outage(err)
}

func allDeny(errs []error, req *admissionv1.AdmissionRequest, anyError bool) bool {
	for _, err := range errs {
		if !denies(err, req, anyError) {
			return false
		}
	}
	return len(errs) > 0
}

// outage tells whether an error, and not one that it wraps, is of what a handler asked
// and not about what it was asked.
func outage(err error) bool {
	if status, ok := err.(apierrors.APIStatus); ok {
		if hasInternalCause(status.Status()) {
			return true
		}
		switch code := status.Status().Code; code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusTooManyRequests:
			return true
		default:
			return code >= http.StatusInternalServerError
		}
	}
	if _, ok := err.(net.Error); ok || meta.IsNoMatchError(err) { //nolint:errorlint // the same
		return true
	}
	typ := reflect.TypeOf(err)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return strings.HasPrefix(typ.PkgPath(), controllerRuntimeCache)
}

// controllerRuntimeCache has errors of a cache that is not started, and of types that it
// does not hold. This package does not import it.
const controllerRuntimeCache = "sigs.k8s.io/controller-runtime/pkg/cache"

// fieldErrors returns the field errors that err is made of, and whether it is made
// of nothing else.
func fieldErrors(err error) (field.ErrorList, bool) {
	switch err := any(err).(type) { // not errors.As: what wraps one error may say more
	case *field.Error:
		return field.ErrorList{err}, true
	case *denial:
		return fieldErrors(err.err)
	case interface{ Errors() []error }: // an Aggregate of apimachinery
		return allFieldErrors(err.Errors())
	case interface{ Unwrap() []error }:
		return allFieldErrors(err.Unwrap())
	}
	return nil, false
}

func allFieldErrors(errs []error) (list field.ErrorList, ok bool) {
	for _, err := range errs {
		more, ok := fieldErrors(err)
		if !ok {
			return nil, false
		}
		list = append(list, more...)
	}
	return list, len(list) > 0
}
