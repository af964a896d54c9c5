// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"sync"
	"time"
)

// callContext is what [context.WithDeadline] returns, but for its price: timer and
// channel are made for the first who waits for its end. Most handlers never wait, they
// compute; and a timer for each call, which mostly is the soonest one of an idle
// process, wakes another thread just to have it look when to wake up next.
type callContext struct {
	parent   context.Context
	deadline time.Time

	mu     sync.Mutex
	waited context.Context // once somebody waits
	cancel context.CancelFunc
	err    error // once it has been told, or the call has ended
}

// withDeadline returns the context of a call, which end ends.
func withDeadline(parent context.Context, deadline time.Time) *callContext {
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	return &callContext{parent: parent, deadline: deadline}
}

// end is the context's cancel function.
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
	case c.err != nil: // it stays what it was
	case c.waited != nil:
		c.err = c.waited.Err()
	case c.parent.Err() != nil:
		c.err = c.parent.Err()
	case !time.Now().Before(c.deadline):
		c.err = context.DeadlineExceeded
	}
	return c.err
}

// Value implements [context.Context]. Contexts that are derived from this one find by
// a value what to hang on to; they have asked for Done before.
func (c *callContext) Value(key any) any {
	c.mu.Lock()
	waited := c.waited
	c.mu.Unlock()
	if waited != nil {
		return waited.Value(key)
	}
	return c.parent.Value(key)
}
