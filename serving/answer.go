// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sallyport-io/sallyport/serving/internal/seats"
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
	// seat is the request's seat among the active reviews, if it has one.
	seat seats.Seat
	// done is set once the request needs no seat any more.
	done bool
}

// WriteHeader writes the header. It releases the seat, since the work is done: a caller
// that reads the response slowly does not block others. If the server has started draining
// since the request arrived, the connection is closed.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
		a.giveSeat()
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

// takeSeat waits for a seat. See [seats.Seats].
func (a *answer) takeSeat(ctx context.Context, until time.Time, before bool) *refusal {
	taken, err := a.server.seats.Take(ctx, until, a.flow, before)
	switch {
	case errors.Is(err, seats.ErrFull):
		return fullLine
	case err != nil:
		return busyReviews
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		taken.Give()
	} else {
		a.seat = taken
	}
	return nil
}

// giveSeat releases the seat for good, if the request has one.
func (a *answer) giveSeat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.lendSeat()
}

// lendSeat releases the seat and reports whether the request had one.
func (a *answer) lendSeat() bool {
	lent := a.seat
	a.seat = seats.Seat{}
	if lent.Taken() {
		lent.Give()
	}
	return lent.Taken()
}

// leave implements [Call.Yield].
func (a *answer) leave(ctx context.Context, wait func()) bool {
	a.mu.Lock()
	had := a.lendSeat()
	a.mu.Unlock()
	wait()
	if !had { // another concurrent Yield of the handler does it
		return true
	}
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(maxTimeout)
	}
	return a.takeSeat(ctx, until, true) == nil
}
