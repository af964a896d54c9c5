// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Frame is what controllers have in common whose work only one replica may do.
type Frame struct {
	Leader Leader
	Log    *slog.Logger
	// Ready waits until everything that the controller reads has been read, or the context ends; nil
	// if it reads nothing before it leads.
	Ready func(context.Context) error
}

// Run calls lead whenever this replica becomes the leader and is ready, until the context ends.
// Lead starts the work of that term, and returns. While another replica leads nothing runs.
//
// It never returns an error: no outage of a controller is worth one of the webhooks.
func (f *Frame) Run(ctx context.Context, lead func(context.Context, *Term)) error {
	WhileLeading(ctx, f.Leader, func(ctx context.Context) {
		if f.Ready != nil && f.Ready(ctx) != nil {
			return
		}
		var t Term
		lead(ctx, &t)
		<-ctx.Done()
		t.running.Wait()
		for i := len(t.ends) - 1; i >= 0; i-- {
			t.ends[i]()
		}
	})
	return nil
}

// Term is a time in which this replica leads.
type Term struct {
	running sync.WaitGroup
	ends    []func()
}

// Go runs a part of the work, which ends with the term's context.
func (t *Term) Go(run func()) { t.running.Go(run) }

// AtEnd calls functions in reverse order once the work has ended: those that remove handlers, for
// example.
func (t *Term) AtEnd(ends ...func()) { t.ends = append(t.ends, ends...) }

// Never ends [Repeat].
const Never time.Duration = -1

// Repeat calls do, and again after the time that it returns, until the context ends or that is
// [Never].
func Repeat(ctx context.Context, do func() (again time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		again := do()
		if again < 0 {
			return
		}
		timer.Reset(again)
	}
}
