// SPDX-License-Identifier: Apache-2.0

// Package turns lets addresses take turns in what costs the server much.
package turns

import (
	"slices"
	"sync"
)

// Turns limits how many connections compute their part of a TLS handshake at the same time, which
// costs a hundred times what the caller pays to ask for it. Addresses take turns, so that one with
// thousands of new connections delays another's handshake by one of its own at most.
type Turns struct {
	mu   sync.Mutex
	free int
	// waiting are the connections of each address that wait, the oldest first, and order the addresses
	// with some, the next one first.
	waiting map[string][]chan struct{}
	order   []string
}

// New returns turns for so many at the same time.
func New(most int) *Turns {
	return &Turns{free: most, waiting: map[string][]chan struct{}{}}
}

// Take waits for a turn of an address. It reports false, without a turn, if done is closed first.
func (t *Turns) Take(address string, done <-chan struct{}) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	if len(t.waiting[address]) == 0 {
		t.order = append(t.order, address)
	}
	t.waiting[address] = append(t.waiting[address], mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-done:
	}
	if !t.leave(address, mine) { // it got its turn at the same time
		t.Give()
	}
	return false
}

// leave takes a connection out of the queue, and reports whether it was in it.
func (t *Turns) leave(address string, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[address]
	for i := range queue {
		if queue[i] == mine {
			if queue = append(queue[:i], queue[i+1:]...); len(queue) > 0 {
				t.waiting[address] = queue
				return true
			}
			delete(t.waiting, address)
			t.order = slices.DeleteFunc(t.order, func(other string) bool { return other == address })
			return true
		}
	}
	return false
}

// Give ends a turn.
func (t *Turns) Give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	address := t.order[0]
	t.order = t.order[1:]
	queue := t.waiting[address]
	close(queue[0])
	if queue = queue[1:]; len(queue) == 0 {
		delete(t.waiting, address)
		return
	}
	t.waiting[address] = queue
	t.order = append(t.order, address)
}
