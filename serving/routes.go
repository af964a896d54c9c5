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

// Route is a path and its handler.
type Route struct {
	// Path is compared exactly, e.g. "/apply-poddefault".
	Path string

	// AnyMethod accepts requests other than POST, which get 405 otherwise. It is for handlers
	// that answer more than reviews.
	AnyMethod bool

	// Answer handles requests whose body has been read. The context ends at the
	// caller's deadline minus a margin. Exactly one of Answer and Handler must be set.
	Answer func(ctx context.Context, w http.ResponseWriter, call Call)
	// Handler is an http.Handler instead of Answer. The body of its requests is in memory
	// and within the size limit.
	Handler http.Handler

	// Flow returns the name of a review's flow from its body, for example its namespace.
	// Flows share the concurrent reviews fairly, so that none waits for many slow reviews
	// of another; a name is the same flow on all routes. It is called only when concurrency
	// is scarce, and must be fast for any body. If it is nil or returns an empty name, all
	// requests to Path are one flow.
	Flow func(body []byte) string

	// Ungated routes are served before the Gate checks have passed. It is for handlers that
	// need no cache, such as conversion, without which custom resources cannot even be
	// read.
	Ungated bool

	// Anonymous routes are served without authentication. It is for conversion, since the
	// API server never authenticates itself to conversion webhooks.
	Anonymous bool
}

// Call is a request to answer.
type Call struct {
	// Request is the HTTP request, whose body has been read.
	Request *http.Request
	// Body is within the size limit. The handler owns it, even after returning.
	Body []byte

	answer *answer
}

// Yield runs wait without counting the call towards [Options.MaxConcurrentReviews], and
// then waits for its turn to continue, as long as ctx lasts. It reports whether the call
// may continue. It is for handlers that wait for something without using a CPU.
func (c Call) Yield(ctx context.Context, wait func()) bool { return c.answer.leave(ctx, wait) }

// route is a Route with its metrics.
type route struct {
	Route
	durations durations
}

// otherPaths is the metric label of the paths of Options.Others.
const otherPaths = "other"

// routes maps paths to routes. Reads take no lock: the map is replaced as a whole.
type routes struct {
	table atomic.Pointer[map[string]*route]
	// mu guards replacing the map.
	mu sync.Mutex
}

// at returns the route of a path, or nil.
func (r *routes) at(path string) *route { return (*r.table.Load())[path] }

// add adds a validated route.
func (r *routes) add(added *route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := maps.Clone(*r.table.Load())
	if table[added.Path] != nil {
		return fmt.Errorf("path %q is already in use", added.Path)
	}
	table[added.Path] = added
	r.table.Store(&table)
	return nil
}

// Handle adds a route at any time; it is served once Handle has returned. The error reports
// all problems of the route; a path can be used only once.
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

// validate reports all problems.
func (r *Route) validate() error {
	var errs []error
	if !strings.HasPrefix(r.Path, "/") {
		errs = append(errs, fmt.Errorf("path %q must start with a slash", r.Path))
	}
	if r.Path == livezPath || r.Path == readyzPath {
		errs = append(errs, fmt.Errorf("path %q is already in use", r.Path))
	}
	switch {
	case r.Handler == nil && r.Answer == nil:
		errs = append(errs, fmt.Errorf("path %q has no handler: set Answer or Handler", r.Path))
	case r.Handler != nil && r.Answer != nil:
		errs = append(errs, fmt.Errorf("path %q has both Answer and Handler: choose one", r.Path))
	}
	return errors.Join(errs...)
}
