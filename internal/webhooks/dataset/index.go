// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrNotInstalled is what [Source] says of a kind without CustomResourceDefinition.
var ErrNotInstalled = errors.New("its CustomResourceDefinition is not installed")

// Source knows claims, Datasets, runtimes, the ConfigMap with the profile and, for
// sidecars, DaemonSets and PersistentVolumes. Find returns nil if there is no such object, and [ErrNotInstalled]
// if there cannot be one. What it returns must not be changed. Fresh asks for the
// object as it is now, and not as it was a moment ago.
//
// Any other error is a fault of the webhook. Wrap it with [admission.Unavailable] if
// another try may succeed.
type Source interface {
	Find(ctx context.Context, ref Ref, fresh bool) (*Object, error)
}

// Index holds objects in memory. It is safe for concurrent use and answers [Source],
// from files for example.
type Index struct {
	mu      sync.RWMutex
	objects map[Ref]*Object
	counts  map[Kind]int
}

// NewIndex is an empty index.
func NewIndex() *Index { return &Index{objects: map[Ref]*Object{}, counts: map[Kind]int{}} }

// Find implements [Source].
func (x *Index) Find(_ context.Context, ref Ref, _ bool) (*Object, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.objects[ref], nil
}

// Set adds an object, or replaces it.
func (x *Index) Set(ref Ref, object *Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.set(ref, object)
}

func (x *Index) set(ref Ref, object *Object) {
	object.prepare(ref)
	if x.objects[ref] == nil {
		x.counts[ref.Kind]++
	}
	x.objects[ref] = object
}

// Delete removes an object, if it is there.
func (x *Index) Delete(ref Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.objects[ref] != nil {
		x.counts[ref.Kind]--
		delete(x.objects, ref)
	}
}

// Replace makes the index hold these objects of a kind and no others.
func (x *Index) Replace(kind Kind, all map[Ref]*Object) {
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

// Count is the number of objects of a kind.
func (x *Index) Count(kind Kind) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.counts[kind]
}

// datasetNamespaces are those with a Dataset, sorted.
func (x *Index) datasetNamespaces() []string {
	seen := map[string]bool{}
	x.mu.RLock()
	for ref := range x.objects {
		if ref.Kind == DatasetKind {
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
