// SPDX-License-Identifier: Apache-2.0

// Package places limits how many calls are at work, and shares the places fairly.
package places

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

var (
	// ErrFull means that the queue has no room.
	ErrFull = errors.New("too many queued reviews")
	// ErrBusy means that no place became free in time.
	ErrBusy = errors.New("too many concurrent reviews")
)

// Places limits the number of active handlers, and shares them fairly between flows, such
// as the reviews of one namespace. A request without a place waits in the queue of its
// flow, and free places go to the queues in turn. So the reviews of a flow wait for each
// other, and hardly for those of other flows.
//
// A flow has at most half of the places, even if no other flow wants one: the next request
// of another flow should not wait for a slow review. Determining a flow takes time, so
// while less than a quarter of the places are taken it is not determined, and such reviews
// count towards every flow.
type Places struct {
	limit     int // at work
	ofFlow    int // at work, of one flow
	unasked   int // active, with undetermined flow
	maxInLine int // over all lines

	mu      sync.Mutex
	taken   int
	asked   int // taken places with determined flow
	waiting int
	flows   map[string]*flow
	turns   list.List // the *flow with a queue, the next one first
}

// flow shares places with other flows. It is deleted when it has neither places nor a
// queue.
type flow struct {
	name  string
	taken int
	line  list.List     // of *waiter
	turn  *list.Element // nil without a queue
}

type waiter struct {
	flow  *flow
	place *list.Element // in the queue; nil once it was called
	// called is closed when the waiter gets a place, or is refused.
	called chan struct{}
	got    bool
}

// New returns places for limit calls at work, and a queue of maxInLine others.
func New(limit, maxInLine int) *Places {
	return &Places{limit: limit, ofFlow: (limit + 1) / 2, unasked: limit / 4, maxInLine: maxInLine, flows: map[string]*flow{}}
}

// Place is a taken place, to be released.
type Place struct {
	places *Places
	flow   *flow // nil if undetermined
}

// Take takes a place. It waits until the given time at most, and no longer than ctx lasts.
// The flow is determined only if it matters. A request that had a place before goes to the
// front of the queue, however long that is. The error is [ErrFull] or [ErrBusy].
func (p *Places) Take(ctx context.Context, until time.Time, name func() string, before bool) (Place, error) {
	p.mu.Lock()
	if p.taken < p.unasked { // then no request waits
		p.taken++
		p.mu.Unlock()
		return Place{places: p}, nil
	}
	p.mu.Unlock()
	named := name()

	p.mu.Lock()
	f := p.flows[named]
	if f == nil {
		f = &flow{name: named}
		p.flows[named] = f
	}
	if f.line.Len() == 0 && p.mayHave(f) {
		p.assign(f)
		p.mu.Unlock()
		return Place{p, f}, nil
	}
	if !before && p.waiting >= p.maxInLine && !p.sendAwayFor(f) {
		p.forget(f)
		p.mu.Unlock()
		return Place{}, ErrFull
	}
	w := p.enqueue(f, before)
	p.mu.Unlock()

	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-w.called:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.got:
		return Place{p, f}, nil
	case w.place == nil:
		return Place{}, ErrFull
	default:
		p.leaveLine(w)
		p.forget(f)
		return Place{}, ErrBusy
	}
}

// Taken reports whether there is a place to give back.
func (held Place) Taken() bool { return held.places != nil }

// Give releases a place to the flow whose turn it is.
func (held Place) Give() {
	p := held.places
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if f := held.flow; f != nil {
		p.asked--
		f.taken--
		p.forget(f)
	}
	for element := p.turns.Front(); element != nil && p.taken < p.limit; {
		f, next := element.Value.(*flow), element.Next()
		if p.mayHave(f) {
			if f.line.Len() > 1 {
				p.turns.MoveToBack(element)
			}
			w := f.line.Front().Value.(*waiter)
			p.leaveLine(w)
			p.assign(f)
			w.got = true
			close(w.called)
		}
		element = next
	}
}

// mayHave reports whether the flow may have one more place. Reviews with undetermined flow
// may belong to it.
func (p *Places) mayHave(f *flow) bool {
	return p.taken < p.limit && f.taken+p.taken-p.asked < p.ofFlow
}

func (p *Places) assign(f *flow) {
	p.taken++
	p.asked++
	f.taken++
}

func (p *Places) enqueue(f *flow, before bool) *waiter {
	w := &waiter{flow: f, called: make(chan struct{})}
	if before {
		w.place = f.line.PushFront(w)
	} else {
		w.place = f.line.PushBack(w)
	}
	if f.turn == nil {
		f.turn = p.turns.PushBack(f)
	}
	p.waiting++
	return w
}

func (p *Places) leaveLine(w *waiter) {
	w.flow.line.Remove(w.place)
	w.place = nil
	p.waiting--
	if w.flow.line.Len() == 0 {
		p.turns.Remove(w.flow.turn)
		w.flow.turn = nil
	}
}

// sendAwayFor makes room in the queue for a request of the flow by refusing the last one of
// the longest queue. It returns false if no queue is longer than the flow's would be.
func (p *Places) sendAwayFor(f *flow) bool {
	var longest *flow
	length := f.line.Len() + 1 // the flow's future length
	for element := p.turns.Front(); element != nil; element = element.Next() {
		if other := element.Value.(*flow); other.line.Len() > length {
			longest, length = other, other.line.Len()
		}
	}
	if longest == nil {
		return false
	}
	w := longest.line.Back().Value.(*waiter)
	p.leaveLine(w)
	p.forget(longest)
	close(w.called)
	return true
}

// forget deletes a flow that is no longer used.
func (p *Places) forget(f *flow) {
	if f.taken == 0 && f.line.Len() == 0 {
		delete(p.flows, f.name)
	}
}

// AtWork is how many places are taken.
func (p *Places) AtWork() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// InLine is how many calls wait for a place.
func (p *Places) InLine() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
