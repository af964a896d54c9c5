// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"sync"
)

// Listeners are functions that are told of something until they are removed. They must not
// block. The zero value has none.
type Listeners[T any] struct {
	mu  sync.Mutex
	all []*func(T)
}

// Add adds a function until remove is called.
func (l *Listeners[T]) Add(told func(T)) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &told)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(one *func(T)) bool { return one == &told }) // Tell may use the other
	}
}

// Tell calls all functions.
func (l *Listeners[T]) Tell(what T) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, told := range all {
		(*told)(what)
	}
}
