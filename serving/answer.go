// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// answer is a response on its way out. It keeps the status, and does what has to
// happen in the moment the handler has made up its mind.
type answer struct {
	http.ResponseWriter
	server *Server
	// connection is a context that knows it.
	connection context.Context
	// status is 0 until the header is written.
	status int
	span   trace.Span // nil if there is none

	to   *route
	body arrival
	data []byte // of the body

	mu sync.Mutex
	// place is the request's place among those at work, if it has one.
	place place
	// done says that it needs none any more.
	done bool
}

// WriteHeader writes the header. The place is given back here, since the work is
// done: a caller who is slow to read the answer holds up nobody else. The
// connection is closed if the server is draining by now, even if it was not when
// the request came.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
		a.givePlace()
		if a.server.draining.Load() {
			a.Header().Set("Connection", "close")
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// flow is the name of the flow that the request is one of.
func (a *answer) flow() string {
	if a.to.Flow != nil {
		if name := a.to.Flow(a.data); name != "" {
			return name
		}
	}
	return a.to.Path
}

// takePlace waits for a place. See places.
func (a *answer) takePlace(ctx context.Context, until time.Time, before bool) *refusal {
	taken, refused := a.server.places.take(ctx, until, a.flow, before)
	if refused != nil {
		return refused
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		taken.give()
	} else {
		a.place = taken
	}
	return nil
}

// givePlace gives the place back for good if the request has one.
func (a *answer) givePlace() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.lendPlace()
}

// lendPlace gives the place back and tells whether the request had one.
func (a *answer) lendPlace() bool {
	lent := a.place
	a.place = place{}
	if lent.places != nil {
		lent.give()
	}
	return lent.places != nil
}

// leave is [Call.Aside].
func (a *answer) leave(ctx context.Context, wait func()) bool {
	a.mu.Lock()
	had := a.lendPlace()
	a.mu.Unlock()
	wait()
	if !had { // the handler waits for several at once, and another one takes care of it
		return true
	}
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(longestTimeout)
	}
	return a.takePlace(ctx, until, true) == nil
}
