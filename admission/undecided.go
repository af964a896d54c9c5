// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalidates tells whether an error, and not one that it wraps, is a status Invalid about
// an object of the request's kind, as apierrors.NewInvalid makes it. A status about
// another kind comes from the API server, about an object that the handler sent to it. A
// status without details could be about anything.
func invalidates(err error, req *admissionv1.AdmissionRequest) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Reason != metav1.StatusReasonInvalid {
		return false
	}
	details := status.Status().Details
	if details == nil {
		return false
	}
	kinds := []metav1.GroupVersionKind{req.Kind}
	if req.RequestKind != nil { // differs if the API server has converted the object
		kinds = append(kinds, *req.RequestKind)
	}
	return slices.ContainsFunc(kinds, func(kind metav1.GroupVersionKind) bool {
		return kind.Kind == details.Kind && kind.Group == details.Group
	})
}

// hasInternalCause tells whether a status has a cause that field.InternalError made.
func hasInternalCause(status metav1.Status) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseType(field.ErrorTypeInternal)
	})
}

// An undecidedError is one that is a fault because nothing marks it as a denial, and that
// its author may have meant as one.
type undecidedError struct {
	error
	hint string
}

func (e *undecidedError) Unwrap() error { return e.error }

// Hint says how to deny instead. Servers log it.
func (e *undecidedError) Hint() string { return e.hint }

// undecided adds a hint to an error that is a fault, unless it tells of an outage.
func (c *call) undecided(err error) error {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonInvalid && !hasInternalCause(status.Status()):
		return &undecidedError{err, "the error is Invalid, and not of the request's kind " + strings.TrimPrefix(c.req.Kind.Group+"/"+c.req.Kind.Kind, "/") +
			": to deny the request, give apierrors.NewInvalid that kind, or return admission.Deny(err)"}
	case denies(err, c.req, true), apierrors.IsForbidden(err):
		return &undecidedError{err, "the error is a fault of the webhook: to deny the request, return admission.Deny(err)"}
	}
	return err
}
