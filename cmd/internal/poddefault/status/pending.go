// SPDX-License-Identifier: Apache-2.0

package status

import "sync"

// pending holds what has changed and still needs processing. Adding is fast, because the
// watch that serves reviews does it.
type pending[K comparable] struct {
	mu  sync.Mutex
	all map[K]struct{}
}

func (p *pending[K]) add(k K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[K]struct{}{}
	}
	p.all[k] = struct{}{}
}

func (p *pending[K]) next() (k K, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k = range p.all {
		delete(p.all, k)
		return k, true
	}
	p.all = nil // a map that has been drained keeps its memory
	return k, false
}

func (p *pending[K]) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) > 0
}
