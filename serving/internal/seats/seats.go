// SPDX-License-Identifier: Apache-2.0

// Package seats limits how many reviews run, and shares the seats fairly.
package seats

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
	// ErrBusy means that no seat became free in time.
	ErrBusy = errors.New("too many concurrent reviews")
)

// Seats limits the number of active handlers, and shares them fairly between flows, such
// as the reviews of one namespace. A request without a seat waits in the queue of its
// flow, and free seats go to the queues in turn. So the reviews of a flow wait for each
// other, and hardly for those of other flows.
//
// A flow has at most half of the seats, even if no other flow wants one: the next request
// of another flow should not wait for a slow review. Determining a flow takes time, so
// while less than a quarter of the seats are taken it is not determined, and such reviews
// count towards every flow.
type Seats struct {
	limit     int // in use
	ofFlow    int // in use, of one flow
	unasked   int // active, with undetermined flow
	maxQueued int // over all queues

	mu      sync.Mutex
	taken   int
	asked   int // taken seats with determined flow
	waiting int
	flows   map[string]*flow
	turns   list.List // the *flow with a queue, the next one first
}

// flow shares seats with other flows. It is deleted when it has neither seats nor a
// queue.
type flow struct {
	name  string
	taken int
	queue list.List     // of *waiter
	turn  *list.Element // nil without a queue
}

type waiter struct {
	flow     *flow
	position *list.Element // in the queue; nil once it was called
	// called is closed when the waiter gets a seat, or is refused.
	called chan struct{}
	got    bool
}

// New returns seats for limit concurrent reviews, and a queue of maxQueued others.
func New(limit, maxQueued int) *Seats {
	return &Seats{limit: limit, ofFlow: (limit + 1) / 2, unasked: limit / 4, maxQueued: maxQueued, flows: map[string]*flow{}}
}

// Seat is a taken seat, to be released.
type Seat struct {
	seats *Seats
	flow  *flow // nil if undetermined
}

// Take takes a seat. It waits until the given time at most, and no longer than ctx lasts.
// The flow is determined only if it matters. A request that had a seat before goes to the
// front of the queue, however long that is. The error is [ErrFull] or [ErrBusy].
func (p *Seats) Take(ctx context.Context, until time.Time, name func() string, before bool) (Seat, error) {
	p.mu.Lock()
	if p.taken < p.unasked { // then no request waits
		p.taken++
		p.mu.Unlock()
		return Seat{seats: p}, nil
	}
	p.mu.Unlock()
	named := name()

	p.mu.Lock()
	f := p.flows[named]
	if f == nil {
		f = &flow{name: named}
		p.flows[named] = f
	}
	if f.queue.Len() == 0 && p.mayHave(f) {
		p.assign(f)
		p.mu.Unlock()
		return Seat{p, f}, nil
	}
	if !before && p.waiting >= p.maxQueued && !p.evictFor(f) {
		p.forget(f)
		p.mu.Unlock()
		return Seat{}, ErrFull
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
		return Seat{p, f}, nil
	case w.position == nil:
		return Seat{}, ErrFull
	default:
		p.dequeue(w)
		p.forget(f)
		return Seat{}, ErrBusy
	}
}

// Taken reports whether there is a seat to give back.
func (held Seat) Taken() bool { return held.seats != nil }

// Give releases a seat to the flow whose turn it is.
func (held Seat) Give() {
	p := held.seats
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
			if f.queue.Len() > 1 {
				p.turns.MoveToBack(element)
			}
			w := f.queue.Front().Value.(*waiter)
			p.dequeue(w)
			p.assign(f)
			w.got = true
			close(w.called)
		}
		element = next
	}
}

// mayHave reports whether the flow may have one more seat. Reviews with undetermined flow
// may belong to it.
func (p *Seats) mayHave(f *flow) bool {
	return p.taken < p.limit && f.taken+p.taken-p.asked < p.ofFlow
}

func (p *Seats) assign(f *flow) {
	p.taken++
	p.asked++
	f.taken++
}

func (p *Seats) enqueue(f *flow, before bool) *waiter {
	w := &waiter{flow: f, called: make(chan struct{})}
	if before {
		w.position = f.queue.PushFront(w)
	} else {
		w.position = f.queue.PushBack(w)
	}
	if f.turn == nil {
		f.turn = p.turns.PushBack(f)
	}
	p.waiting++
	return w
}

func (p *Seats) dequeue(w *waiter) {
	w.flow.queue.Remove(w.position)
	w.position = nil
	p.waiting--
	if w.flow.queue.Len() == 0 {
		p.turns.Remove(w.flow.turn)
		w.flow.turn = nil
	}
}

// evictFor makes room in the queue for a request of the flow by refusing the last one of
// the longest queue. It returns false if no queue is longer than the flow's would be.
func (p *Seats) evictFor(f *flow) bool {
	var longest *flow
	length := f.queue.Len() + 1 // the flow's future length
	for element := p.turns.Front(); element != nil; element = element.Next() {
		if other := element.Value.(*flow); other.queue.Len() > length {
			longest, length = other, other.queue.Len()
		}
	}
	if longest == nil {
		return false
	}
	w := longest.queue.Back().Value.(*waiter)
	p.dequeue(w)
	p.forget(longest)
	close(w.called)
	return true
}

// forget deletes a flow that is no longer used.
func (p *Seats) forget(f *flow) {
	if f.taken == 0 && f.queue.Len() == 0 {
		delete(p.flows, f.name)
	}
}

// InUse is how many seats are taken.
func (p *Seats) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Queued is how many calls wait for a seat.
func (p *Seats) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
