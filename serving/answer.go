// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sallyport-io/sallyport/serving/internal/places"
)

// answer is the response writer of a call. It records the status, and releases what the
// call holds as soon as the handler writes the header.
type answer struct {
	http.ResponseWriter
	server *Server
	// connection is a context that identifies the connection.
	connection context.Context
	// status is 0 until the header is written.
	status int
	span   trace.Span // nil without tracing

	to   *route
	body arrival
	data []byte // body

	mu sync.Mutex
	// place is the request's place among the active reviews, if it has one.
	place places.Place
	// done is set once the request needs no place any more.
	done bool
}

// WriteHeader writes the header. It releases the place, since the work is done: a caller
// that reads the response slowly does not block others. If the server has started draining
// since the request arrived, the connection is closed.
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

// Flush implements [http.Flusher].
func (a *answer) Flush() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(a.ResponseWriter).Flush() // net/http's writers can
}

// flow is the name of the request's flow.
func (a *answer) flow() string {
	if a.to.Flow != nil {
		if name := a.to.Flow(a.data); name != "" {
			return name
		}
	}
	return a.to.Path
}

// takePlace waits for a place. See [places.Places].
func (a *answer) takePlace(ctx context.Context, until time.Time, before bool) *refusal {
	taken, err := a.server.places.Take(ctx, until, a.flow, before)
	switch {
	case errors.Is(err, places.ErrFull):
		return fullLine
	case err != nil:
		return busyReviews
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		taken.Give()
	} else {
		a.place = taken
	}
	return nil
}

// givePlace releases the place for good, if the request has one.
func (a *answer) givePlace() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.lendPlace()
}

// lendPlace releases the place and reports whether the request had one.
func (a *answer) lendPlace() bool {
	lent := a.place
	a.place = places.Place{}
	if lent.Taken() {
		lent.Give()
	}
	return lent.Taken()
}

// leave implements [Call.Aside].
func (a *answer) leave(ctx context.Context, wait func()) bool {
	a.mu.Lock()
	had := a.lendPlace()
	a.mu.Unlock()
	wait()
	if !had { // another concurrent Aside of the handler does it
		return true
	}
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(maxTimeout)
	}
	return a.takePlace(ctx, until, true) == nil
}
