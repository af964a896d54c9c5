// SPDX-License-Identifier: Apache-2.0

// Package store caches the objects of a cluster for one process. Each kind is listed and
// watched once, by a reflector of client-go, regardless of the number of readers; stores
// keep only the fields that readers need. Reviews are answered from it, and controllers get
// their keys from it.
//
// It does not use client-go's shared informer, whose backoff after a failure is not
// configurable: up to a minute, during which reviews would be answered from stale objects.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Identity identifies an object of a kind, and its revision.
type Identity struct {
	types.NamespacedName
	UID             types.UID
	ResourceVersion string
}

// Object is the cached part of an object of the cluster: a pointer to what is immutable. The
// store compares it as an interface, because with the constraint comparable the compiler
// copies all code of a store for each kind.
type Object interface {
	Identity() Identity
}

// Kind defines the objects of a store.
type Kind[T runtime.Object, O Object] struct {
	Name    string // for the log
	Example T
	From    cache.ListerWatcher
	// Keep returns the part of an object to cache. It must not retain the object itself.
	Keep func(T) O
	// Optional treats a missing definition of the kind as a kind without objects.
	Optional bool
	// Longest is the maximum backoff after a failure; zero means [Soon].
	Longest time.Duration
}

// Change is a change of one object: a creation without the object before, a deletion
// without the object now.
type Change[O Object] struct{ Before, Now O }

// Object returns the current object, or the one that was deleted.
func (c Change[O]) Object() O {
	var none O
	if any(c.Now) != any(none) {
		return c.Now
	}
	return c.Before
}

// Handler is notified of the changes in a store, one call at a time. It must not block, and
// may read the store.
type Handler[O Object] struct {
	// Changed gets a batch of changes. The first call has all existing objects.
	Changed func([]Change[O])
	// Synced is called when all objects have been read for the first time; may be nil.
	Synced func()
}

// Store caches the objects of one kind, and watches them while it runs. During an outage of
// the API server it keeps serving the cached objects. See [New].
type Store[O Object] struct {
	reflector *cache.Reflector
	synced    chan struct{}

	handling sync.Mutex // serializes changes and calls of handlers
	handlers []*Handler[O]

	mu      sync.RWMutex
	objects map[types.NamespacedName]O

	running sync.Mutex
	users   int
	stop    context.CancelFunc
	stopped chan struct{}
}

// New returns an empty store; [Store.Run] fills it.
func New[T runtime.Object, O Object](kind Kind[T, O], logger *slog.Logger) *Store[O] {
	s := &Store[O]{synced: make(chan struct{}), objects: map[types.NamespacedName]O{}}
	if kind.Longest == 0 {
		kind.Longest = Soon
	}
	if kind.Optional {
		kind.From = ifInstalled(kind.From)
	}
	w := writer[T, O]{s, kind.Keep}
	s.reflector = Reflector(kind.Name, kind.Longest, inPages(kind.From, w.kept), kind.Example, w)
	return s
}

// Run watches the objects until the context ends. Several callers share one watch, which
// ends with the last of them.
func (s *Store[O]) Run(ctx context.Context) {
	s.running.Lock()
	if s.users++; s.users == 1 {
		var shared context.Context
		shared, s.stop = context.WithCancel(context.WithoutCancel(ctx))
		stopped := make(chan struct{})
		s.stopped = stopped
		go func() {
			defer close(stopped)
			s.reflector.RunWithContext(shared)
		}()
	}
	s.running.Unlock()
	<-ctx.Done()
	s.running.Lock()
	defer s.running.Unlock()
	if s.users--; s.users == 0 {
		s.stop()
		<-s.stopped
	}
}

// Synced is closed once all objects have been read.
func (s *Store[O]) Synced() <-chan struct{} { return s.synced }

// HasSynced reports whether all objects have been read.
func (s *Store[O]) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// Get returns the object of that name, or the zero value if there is none.
func (s *Store[O]) Get(name types.NamespacedName) O {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[name]
}

// List returns all objects in no order.
func (s *Store[O]) List() []O {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]O, 0, len(s.objects))
	for _, o := range s.objects {
		all = append(all, o)
	}
	return all
}

// Len is the number of objects.
func (s *Store[O]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Handle notifies a handler of all objects, and of each change, until remove is called.
func (s *Store[O]) Handle(h Handler[O]) (remove func()) {
	s.handling.Lock()
	defer s.handling.Unlock()
	s.handlers = append(s.handlers, &h)
	added := &h
	if all := s.List(); len(all) > 0 {
		changes := make([]Change[O], 0, len(all))
		for _, o := range all {
			changes = append(changes, Change[O]{Now: o})
		}
		h.Changed(changes)
	}
	if h.Synced != nil && s.HasSynced() {
		h.Synced()
	}
	return func() {
		s.handling.Lock()
		defer s.handling.Unlock()
		s.handlers = slices.DeleteFunc(s.handlers, func(one *Handler[O]) bool { return one == added })
	}
}

// HandleAny calls changed after each batch of changes, until remove is called. It must not block.
func (s *Store[O]) HandleAny(changed func()) (remove func()) {
	return s.Handle(Handler[O]{Changed: func([]Change[O]) { changed() }})
}

// HandleNames calls changed with the name of each object, and of each that changes, until remove is
// called. It must not block.
func (s *Store[O]) HandleNames(changed func(types.NamespacedName)) (remove func()) {
	return s.Handle(Handler[O]{Changed: func(changes []Change[O]) {
		for _, c := range changes {
			changed(c.Object().Identity().NamespacedName)
		}
	}})
}

// Set adds or replaces the object of that name.
func (s *Store[O]) Set(now O) {
	s.handling.Lock()
	defer s.handling.Unlock()
	name := now.Identity().NamespacedName
	s.mu.Lock()
	before := s.objects[name]
	s.objects[name] = now
	s.mu.Unlock()
	s.tell([]Change[O]{{before, now}})
}

// Update replaces the object of that name by what change returns, if there is one and that
// differs. Nothing else changes the store meanwhile.
func (s *Store[O]) Update(name types.NamespacedName, change func(O) O) {
	s.handling.Lock()
	defer s.handling.Unlock()
	s.mu.RLock()
	before, there := s.objects[name]
	s.mu.RUnlock()
	if !there {
		return
	}
	now := change(before)
	if any(before) == any(now) {
		return
	}
	s.mu.Lock()
	s.objects[name] = now
	s.mu.Unlock()
	s.tell([]Change[O]{{before, now}})
}

// Delete removes the object of that name, if there is one.
func (s *Store[O]) Delete(name types.NamespacedName) {
	s.handling.Lock()
	defer s.handling.Unlock()
	s.mu.Lock()
	before, there := s.objects[name]
	delete(s.objects, name)
	s.mu.Unlock()
	if there {
		s.tell([]Change[O]{{Before: before}})
	}
}

// Replace replaces all objects of the store.
func (s *Store[O]) Replace(all []O) {
	s.handling.Lock()
	defer s.handling.Unlock()
	objects := make(map[types.NamespacedName]O, len(all))
	var changes []Change[O]
	for _, now := range all {
		name := now.Identity().NamespacedName
		objects[name] = now
		if before := s.Get(name); any(before) != any(now) {
			changes = append(changes, Change[O]{before, now})
		}
	}
	for _, before := range s.List() {
		if _, stays := objects[before.Identity().NamespacedName]; !stays {
			changes = append(changes, Change[O]{Before: before})
		}
	}
	s.mu.Lock()
	s.objects = objects
	s.mu.Unlock()
	s.tell(changes)
	if s.HasSynced() {
		return
	}
	close(s.synced)
	for _, h := range s.handlers {
		if h.Synced != nil {
			h.Synced()
		}
	}
}

func (s *Store[O]) tell(changes []Change[O]) {
	if len(changes) == 0 {
		return
	}
	for _, h := range s.handlers {
		h.Changed(changes)
	}
}

// writer implements the interface that the reflector writes to.
type writer[T runtime.Object, O Object] struct {
	store *Store[O]
	keep  func(T) O
}

// kept returns the cached part of an object, and reuses the cached one if it is unchanged.
func (w writer[T, O]) kept(object T) O {
	if is, err := identify(object); err == nil {
		var none O
		if known := w.store.Get(is.NamespacedName); any(known) != any(none) && known.Identity() == is {
			return known
		}
	}
	return w.keep(object)
}

// Add implements [cache.ReflectorStore].
func (w writer[T, O]) Add(object any) error {
	typed, err := as[T](object)
	if err == nil {
		w.store.Set(w.keep(typed))
	}
	return err
}

// Update implements [cache.ReflectorStore].
func (w writer[T, O]) Update(object any) error { return w.Add(object) }

// Delete implements [cache.ReflectorStore].
func (w writer[T, O]) Delete(object any) error {
	typed, err := as[T](object)
	if err != nil {
		return err
	}
	is, err := identify(typed)
	if err == nil {
		w.store.Delete(is.NamespacedName)
	}
	return err
}

// Replace implements [cache.ReflectorStore].
func (w writer[T, O]) Replace(objects []any, _ string) error {
	all := make([]O, 0, len(objects))
	for _, object := range objects {
		one, err := as[*digest[O]](object)
		if err != nil {
			return err
		}
		all = append(all, one.of)
	}
	w.store.Replace(all)
	return nil
}

// Resync implements [cache.ReflectorStore].
func (w writer[T, O]) Resync() error { return nil }

func as[T any](object any) (T, error) {
	typed, ok := object.(T)
	if !ok {
		return typed, fmt.Errorf("expected %T, got %T", typed, object)
	}
	return typed, nil
}
