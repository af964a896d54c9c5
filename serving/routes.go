// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// Route is a path and who answers it.
type Route struct {
	// Path is compared exactly, e.g. "/apply-poddefault".
	Path string

	// Answer answers POST requests whose body has been read. The context ends at the
	// caller's deadline less a margin. One of Answer and Handler is set.
	Answer func(ctx context.Context, w http.ResponseWriter, call Call)
	// Handler is an http.Handler in the place of Answer. The body of its requests is in
	// memory, and has passed the size limit.
	Handler http.Handler

	// Flow names the flow that a review is one of, by its body, for example its namespace.
	// Flows share the places for reviews, so that none waits for many slow ones of another;
	// one name is one flow on all routes. It is called only when places are scarce, and must
	// be fast, whatever the body holds. Nil, or no name: what is sent to Path is one flow.
	Flow func(body []byte) string

	// Ungated routes are answered before the Gate checks have passed. For
	// handlers that need no cache: conversion, without which custom resources
	// cannot even be read.
	Ungated bool

	// Anonymous routes are answered to callers that Authenticate does not know. For
	// conversion: the API server never shows who it is to those webhooks.
	Anonymous bool
}

// Call is what is answered.
type Call struct {
	// Request is the call as it came, but for its body, which has been read.
	Request *http.Request
	// Body has passed the size limit. It is of the one who answers, also afterwards.
	Body []byte

	answer *answer
}

// Aside runs wait while the call is not among those at work, whose number
// [Options.MaxConcurrentReviews] bounds, and then waits for a place in turn, for as long as
// ctx lasts. It tells whether there was one. It is for who waits for somebody else, and
// needs no processor meanwhile.
func (c Call) Aside(ctx context.Context, wait func()) bool { return c.answer.leave(ctx, wait) }

// route is a Route with its metrics.
type route struct {
	Route
	durations durations
	anyMethod bool // not only POST
}

// otherPaths is what metrics call the paths of Options.Others.
const otherPaths = "other"

// routes is the table of who answers which path. Reading it takes no lock: it is
// replaced as a whole.
type routes struct {
	table atomic.Pointer[map[string]*route]
	// mu is held by who replaces the table.
	mu sync.Mutex
}

// at is the route of a path, or nil.
func (r *routes) at(path string) *route { return (*r.table.Load())[path] }

// add adds a route that was checked.
func (r *routes) add(added *route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := maps.Clone(*r.table.Load())
	if table[added.Path] != nil {
		return fmt.Errorf("path %q is taken twice", added.Path)
	}
	table[added.Path] = added
	r.table.Store(&table)
	return nil
}

// Handle adds a route, at any time: it is served as soon as Handle has returned.
// The error reports all problems of the route; a path can be taken once.
func (s *Server) Handle(given Route) error {
	err := given.validate()
	if err == nil {
		err = s.routes.add(&route{Route: given, durations: s.metrics.durationsOf(given.Path)})
	}
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// validate reports all problems at once.
func (r *Route) validate() error {
	var errs []error
	if !strings.HasPrefix(r.Path, "/") {
		errs = append(errs, fmt.Errorf("path %q must start with a slash", r.Path))
	}
	if r.Path == livezPath || r.Path == readyzPath {
		errs = append(errs, fmt.Errorf("path %q is taken twice", r.Path))
	}
	switch {
	case r.Handler == nil && r.Answer == nil:
		errs = append(errs, fmt.Errorf("path %q has no handler: set Answer or Handler", r.Path))
	case r.Handler != nil && r.Answer != nil:
		errs = append(errs, fmt.Errorf("path %q has both Answer and Handler: choose one", r.Path))
	}
	return errors.Join(errs...)
}
