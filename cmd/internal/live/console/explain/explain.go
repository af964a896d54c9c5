// SPDX-License-Identifier: Apache-2.0

// Package explain says what an error means for the user of the console, and what to do.
package explain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// MaxAnswer limits the bytes of a page.
const MaxAnswer = 1 << 20

var (
	// ErrBadInput is a problem of the request.
	ErrBadInput = errors.New("the request is invalid")
	// ErrTooLarge refuses a page.
	ErrTooLarge = fmt.Errorf("the page has more than %d MiB", MaxAnswer>>20)
)

// A Problem replaces the content of a page.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Help   string `json:"help"`
}

// Error says what an error means for the user, and what to do.
func Error(err error) Problem {
	text := err.Error()
	var network net.Error
	switch {
	case errors.Is(err, ErrTooLarge):
		return Problem{http.StatusBadRequest, "This page is too large", text, "Choose one namespace or fewer objects, or use the command line, which has no such limit."}
	case errors.Is(err, ErrBadInput):
		return Problem{http.StatusBadRequest, "This page cannot be shown", text, "Correct the address or the form."}
	case apierrors.IsForbidden(err):
		return Problem{http.StatusForbidden, "You may not read this", text, "Ask an administrator for the right to read it. The console has no rights of its own."}
	case apierrors.IsUnauthorized(err):
		return Problem{http.StatusForbidden, "You may not read this", text, "Sign in to the cluster again: the API server does not accept the credentials."}
	case apierrors.IsNotFound(err):
		return Problem{http.StatusNotFound, "There is no such object", text, "It may have been deleted. Check the name and the namespace."}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return Problem{http.StatusServiceUnavailable, "The API server does not answer", text, "Load the page again in a few seconds."}
	}
	return Problem{http.StatusInternalServerError, "This page cannot be shown", text, "Load the page again, and see the log of the console."}
}
