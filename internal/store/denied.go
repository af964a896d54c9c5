// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// denied records which kinds this process may not read. Other failures are temporary,
// but revoked rights do not return by themselves. The zero value is ready to use.
type denied struct {
	mu    sync.Mutex
	kinds map[string]error
}

func (d *denied) note(kind string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		delete(d.kinds, kind)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		if d.kinds == nil {
			d.kinds = map[string]error{}
		}
		d.kinds[kind] = err
	}
}

// noting records refusals of a source until it succeeds again.
func (d *denied) noting(kind string, from cache.ListerWatcher) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, options)
			d.note(kind, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := source.WatchWithContext(ctx, options)
			d.note(kind, err)
			return events, err
		},
	}
}

// err returns everything that is currently denied, or nil.
func (d *denied) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(d.kinds)) {
		errs = append(errs, d.kinds[kind])
	}
	return errors.Join(errs...)
}
