// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sallyport-io/sallyport/internal/wire/httprequest"
)

// callContext is a cheaper [context.WithDeadline]: it creates timer and channel when Done
// is first called. Most handlers only compute and never wait. A timer for each call, which
// mostly is the earliest one of an idle process, would wake another thread just to compute
// the next wakeup.
type callContext struct {
	parent   context.Context
	deadline time.Time
	request  *http.Request // of which the call is part

	mu     sync.Mutex
	waited context.Context // set once Done is called
	cancel context.CancelFunc
	err    error // set once observed, or the call has ended
}

// withDeadline returns the context of a call; end cancels it.
func withDeadline(parent context.Context, deadline time.Time) *callContext {
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	return &callContext{parent: parent, deadline: deadline}
}

// end cancels the context.
func (c *callContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	if c.errLocked() == nil {
		c.err = context.Canceled
	}
}

// Deadline implements [context.Context].
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements [context.Context].
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited == nil {
		c.waited, c.cancel = context.WithDeadline(c.parent, c.deadline)
		if c.err != nil {
			c.cancel()
		}
	}
	return c.waited.Done()
}

// Err implements [context.Context].
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errLocked()
}

func (c *callContext) errLocked() error {
	switch {
	case c.err != nil: // the first error stays
	case c.waited != nil:
		c.err = c.waited.Err()
	case c.parent.Err() != nil:
		c.err = c.parent.Err()
	case !time.Now().Before(c.deadline):
		c.err = context.DeadlineExceeded
	}
	return c.err
}

// Value implements [context.Context]. Derived contexts look up their cancelable parent by a
// value, after calling Done.
func (c *callContext) Value(key any) any {
	if key == (httprequest.Key{}) {
		return c.request
	}
	c.mu.Lock()
	waited := c.waited
	c.mu.Unlock()
	if waited != nil {
		return waited.Value(key)
	}
	return c.parent.Value(key)
}
