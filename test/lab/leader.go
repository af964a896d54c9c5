// SPDX-License-Identifier: Apache-2.0

package lab

import "sync"

// Leader leads when a test says so.
type Leader struct {
	mu      sync.Mutex
	leading bool
	changed chan struct{}
}

// NewLeader returns a leader that leads, or does not.
func NewLeader(leading bool) *Leader {
	return &Leader{leading: leading, changed: make(chan struct{})}
}

// Leading reports whether it leads.
func (l *Leader) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

// Changed returns a channel that is closed by the next call of Lead.
func (l *Leader) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Lead makes it lead, or not.
func (l *Leader) Lead(leading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = leading
	close(l.changed)
	l.changed = make(chan struct{})
}
