// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// places bound how many handlers are at work, and share them between flows: reviews of one
// namespace, say. Whoever finds no place waits in the line of its flow, and places that
// become free go to the lines in turn. So the reviews of a flow wait for each other, and
// hardly for those of others.
//
// A flow has half of the places at most, also while nobody else wants one: who comes next
// should not have to wait for a slow review of somebody else. To find out a flow takes
// time. While less than a quarter of the places are taken nobody asks for it, and such
// reviews count as everybody's.
type places struct {
	limit      int // at work
	ofFlow     int // at work, of one flow
	unasked    int // at work, without having been asked for their flow
	mostInLine int // over all lines

	mu      sync.Mutex
	taken   int
	asked   int // of the taken
	waiting int
	flows   map[string]*flow
	turns   list.List // of the *flow that have a line, the next one first
}

// A flow shares places with other flows. It is forgotten when it has neither places nor
// a line.
type flow struct {
	name  string
	taken int
	line  list.List     // of *waiter
	turn  *list.Element // nil without a line
}

type waiter struct {
	flow  *flow
	place *list.Element // in line; nil once it was called
	// called is closed when the waiter has got a place, or is sent away.
	called chan struct{}
	got    bool
}

func newPlaces(limit, mostInLine int) *places {
	return &places{limit: limit, ofFlow: (limit + 1) / 2, unasked: limit / 4, mostInLine: mostInLine, flows: map[string]*flow{}}
}

// A place is one that was taken, to be given back.
type place struct {
	places *places
	flow   *flow // nil if it was not asked for
}

// take takes a place. It waits for one until the given time at most, and no longer
// than ctx lasts. The name of the flow is asked for if it matters. Who was at work
// before goes to the front of the line, however long that is.
func (p *places) take(ctx context.Context, until time.Time, name func() string, before bool) (place, *refusal) {
	p.mu.Lock()
	if p.taken < p.unasked { // then nobody waits
		p.taken++
		p.mu.Unlock()
		return place{places: p}, nil
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
		return place{p, f}, nil
	}
	if !before && p.waiting >= p.mostInLine && !p.sendAwayFor(f) {
		p.forget(f)
		p.mu.Unlock()
		return place{}, fullLine
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
		return place{p, f}, nil
	case w.place == nil:
		return place{}, fullLine
	default:
		p.leaveLine(w)
		p.forget(f)
		return place{}, busyReviews
	}
}

// give gives a place back, to whose turn it is.
func (held place) give() {
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

// mayHave tells whether the flow may have one more place. Who was not asked may be of it.
func (p *places) mayHave(f *flow) bool {
	return p.taken < p.limit && f.taken+p.taken-p.asked < p.ofFlow
}

func (p *places) assign(f *flow) {
	p.taken++
	p.asked++
	f.taken++
}

func (p *places) enqueue(f *flow, before bool) *waiter {
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

func (p *places) leaveLine(w *waiter) {
	w.flow.line.Remove(w.place)
	w.place = nil
	p.waiting--
	if w.flow.line.Len() == 0 {
		p.turns.Remove(w.flow.turn)
		w.flow.turn = nil
	}
}

// sendAwayFor makes room in line for one of the flow: the last one of the longest line is
// sent away. It is false if no line is longer than the flow's would be.
func (p *places) sendAwayFor(f *flow) bool {
	var longest *flow
	length := f.line.Len() + 1 // as long as that of the flow will be
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

// forget forgets a flow that nobody needs.
func (p *places) forget(f *flow) {
	if f.taken == 0 && f.line.Len() == 0 {
		delete(p.flows, f.name)
	}
}

// atWork and inLine are for the metrics.
func (p *places) atWork() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *places) inLine() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
