// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sallyport-io/sallyport/internal/aside"
)

// answer is a response on its way out. It keeps the status, and does what has to
// happen in the moment the handler has made up its mind.
type answer struct {
	http.ResponseWriter
	server *Server
	// status is 0 until the header is written.
	status int
	span   trace.Span // nil if there is none

	mu sync.Mutex
	// slot says that the request occupies one of the slots for reviews.
	slot bool
	// done says that it needs none any more.
	done bool
}

var _ aside.Place = (*answer)(nil)

// WriteHeader writes the header. The slot is given back here, since the work is
// done: a caller who is slow to read the answer holds up nobody else. The
// connection is closed if the server is draining by now, even if it was not when
// the request came.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK && a.status == 0 {
		a.status = status
		a.giveSlot()
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

// takeSlot waits for a slot. See slots.
func (a *answer) takeSlot(ctx context.Context, until time.Time) bool {
	if !a.server.slots.take(ctx, until) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slot = !a.done
	if a.done {
		a.server.slots.give()
	}
	return true
}

// giveSlot gives the slot back for good if the request has one.
func (a *answer) giveSlot() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.lendSlot()
}

// lendSlot gives the slot back and tells whether the request had one.
func (a *answer) lendSlot() bool {
	had := a.slot
	if had {
		a.slot = false
		a.server.slots.give()
	}
	return had
}

// Leave implements [aside.Place].
func (a *answer) Leave(ctx context.Context, wait func()) bool {
	a.mu.Lock()
	had := a.lendSlot()
	a.mu.Unlock()
	wait()
	if !had { // the handler waits for several at once, and another one takes care of it
		return true
	}
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(longestTimeout)
	}
	return a.takeSlot(ctx, until)
}
