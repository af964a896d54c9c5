// SPDX-License-Identifier: Apache-2.0

package status

import "sync"

// pending holds changed objects and namespaces that still need processing. Adding is
// fast, because the watch that serves reviews does it.
type pending struct {
	mu         sync.Mutex
	objects    map[key]struct{}
	namespaces map[string]struct{}
}

func newPending() pending {
	return pending{objects: map[key]struct{}{}, namespaces: map[string]struct{}{}}
}

func (p *pending) add(k key) { add(p, p.objects, k) }

func (p *pending) addNamespace(name string) { add(p, p.namespaces, name) }

func (p *pending) next() (key, bool) { return next(p, p.objects) }

func (p *pending) nextNamespace() (string, bool) { return next(p, p.namespaces) }

func (p *pending) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.objects)+len(p.namespaces) > 0
}

func add[K comparable](p *pending, to map[K]struct{}, k K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to[k] = struct{}{}
}

func next[K comparable](p *pending, from map[K]struct{}) (k K, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k = range from {
		delete(from, k)
		return k, true
	}
	return k, false
}
