// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"log/slog"
	"time"
)

// call is a call that is being answered. The zero value stands for no call.
type call struct {
	path     string
	deadline time.Time
	told     bool // that it is overdue
}

// overdueEvery is how often the server looks for calls that are overdue. A timer for each call would cost
// each of them, for what hardly ever happens.
const overdueEvery = 5 * time.Second

// reportOverdue logs each call that is not answered [overdueEvery] after its deadline: a handler that ignores its
// context may never return, and then nothing else tells about it.
func (s *Server) reportOverdue(ctx context.Context) {
	ticker := time.NewTicker(overdueEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, late := range s.connections.overdue(now.Add(-overdueEvery)) {
				s.log.WarnContext(ctx, "a handler has not returned long after the deadline of its call: it must stop when its context ends",
					slog.String("path", late.path), slog.Duration("late", now.Sub(late.deadline)))
			}
		}
	}
}

// overdue returns the calls whose deadline was before a time, each of them once.
func (c *connections) overdue(before time.Time) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []call
	for _, element := range c.open {
		if is := &element.Value.(*connection).call; is.path != "" && !is.told && is.deadline.Before(before) {
			is.told = true
			late = append(late, *is)
		}
	}
	return late
}
