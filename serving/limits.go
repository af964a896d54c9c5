// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"sync/atomic"
	"time"
)

// slots bound how many handlers are at work. Whoever finds none waits in line,
// first come first served.
type slots struct {
	taken   chan struct{}
	waiting atomic.Int64
}

func newSlots(n int) *slots {
	return &slots{taken: make(chan struct{}, n)}
}

// take takes a slot. It waits for one until the given time at most, and no longer
// than ctx lasts, and reports whether it got one.
func (s *slots) take(ctx context.Context, until time.Time) bool {
	select {
	case s.taken <- struct{}{}:
		return true
	default:
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

func (s *slots) give() { <-s.taken }

// quantity bounds the bytes that are held at one time.
type quantity struct {
	limit int64
	held  atomic.Int64
}

// take takes n and reports whether there was room.
func (q *quantity) take(n int64) bool {
	if q.held.Add(n) <= q.limit {
		return true
	}
	q.held.Add(-n)
	return false
}

func (q *quantity) give(n int64) { q.held.Add(-n) }
