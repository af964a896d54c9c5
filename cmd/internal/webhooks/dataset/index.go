// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
)

// ErrNotInstalled is the error of a [Source] for a kind without
// CustomResourceDefinition.
var ErrNotInstalled = errors.New("its CustomResourceDefinition is not installed")

// Source provides claims, Datasets, runtimes, the ConfigMap with the profile and, for
// sidecars, DaemonSets and PersistentVolumes. Find returns nil if the object does not
// exist, and [ErrNotInstalled] if its kind does not. Results must not be changed. Fresh
// requests the current object instead of a cached one.
//
// Any other error is a fault of the webhook. Wrap it with [admission.Unavailable] if a
// retry may succeed.
type Source interface {
	Find(ctx context.Context, ref Ref, fresh bool) (*Object, error)
}

// Index holds objects in memory, for example from files. It is safe for concurrent use
// and implements [Source].
type Index struct {
	mu      sync.RWMutex
	objects map[Ref]*Object
	counts  map[kinds.Kind]int
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{objects: map[Ref]*Object{}, counts: map[kinds.Kind]int{}} }

// Find implements [Source].
func (x *Index) Find(_ context.Context, ref Ref, _ bool) (*Object, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.objects[ref], nil
}

// Set adds or replaces an object.
func (x *Index) Set(ref Ref, object *Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.set(ref, object)
}

func (x *Index) set(ref Ref, object *Object) {
	object.Prepare(ref)
	if x.objects[ref] == nil {
		x.counts[ref.Kind]++
	}
	x.objects[ref] = object
}

// Delete removes an object, if it exists.
func (x *Index) Delete(ref Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.objects[ref] != nil {
		x.counts[ref.Kind]--
		delete(x.objects, ref)
	}
}

// Replace replaces all objects of a kind.
func (x *Index) Replace(kind kinds.Kind, all map[Ref]*Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for ref := range x.objects {
		if ref.Kind == kind && all[ref] == nil {
			delete(x.objects, ref)
			x.counts[kind]--
		}
	}
	for ref, object := range all {
		x.set(ref, object)
	}
}

// Count returns the number of objects of a kind.
func (x *Index) Count(kind kinds.Kind) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.counts[kind]
}

// DatasetNamespaces returns the namespaces with a Dataset, sorted.
func (x *Index) DatasetNamespaces() []string {
	seen := map[string]bool{}
	x.mu.RLock()
	for ref := range x.objects {
		if ref.Kind == kinds.Dataset {
			seen[ref.Namespace] = true
		}
	}
	x.mu.RUnlock()
	var out []string
	for namespace := range seen {
		out = append(out, namespace)
	}
	slices.Sort(out)
	return out
}
