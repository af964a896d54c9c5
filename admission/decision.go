// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What becomes of the error that a typed handler returns:
//
//	error                                          answer
//	-----                                          ------
//	marked by Fault or Unavailable                 fault: the failurePolicy applies
//	a context's, deadline exceeded or cancelled    fault
//	an API status from 500 (apierrors.NewInternalError,
//	or what a client got from the API server)      fault
//	another API status (apierrors.NewConflict)     denied with its code, reason and details
//	field errors only (field.ErrorList.ToAggregate) denied with 422 Invalid, a cause for each
//	any other                                      denied with 403 Forbidden and the error's text
//
// It is looked for in what the error wraps and joins; a fault among decisions is a
// fault. Mutators and validators are treated alike, as controller-runtime does: a
// mutator that gives up refuses the object, and no failurePolicy lets it pass
// unchanged. If that is what is wanted, it says Fault.

// Fault marks an error of a typed handler as a fault of the webhook itself: a
// dependency that does not answer, a bug. The API server gets an HTTP error and the
// failurePolicy of the webhook's configuration applies. Without the mark an error
// refuses the object. Nil stays nil. See [Unavailable] for faults that pass.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	return &faultError{err}
}

type faultError struct{ err error }

func (e *faultError) Error() string { return e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// decide turns the error of a typed handler into its answer, see above.
func (c *call) decide(err error) (*Response, error) {
	var fault *faultError
	_, passes := RetryAfter(err)
	switch {
	case passes, errors.As(err, &fault), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil, err
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		decision := status.Status()
		if decision.Code >= http.StatusInternalServerError {
			return nil, err
		}
		if decision.Message == "" {
			decision.Message = err.Error()
		}
		return c.response(DeniedWith(decision)), nil
	}
	if list, ok := fieldErrors(err); ok {
		kind := schema.GroupKind{Group: c.req.Kind.Group, Kind: c.req.Kind.Kind}
		return c.response(DeniedWith(apierrors.NewInvalid(kind, c.req.Name, list).ErrStatus)), nil
	}
	return c.response(Denied(err.Error())), nil
}

// fieldErrors returns the field errors that err is made of, and whether it is made
// of nothing else.
func fieldErrors(err error) (field.ErrorList, bool) {
	switch err := any(err).(type) { // not errors.As: what wraps one error may say more
	case *field.Error:
		return field.ErrorList{err}, true
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
