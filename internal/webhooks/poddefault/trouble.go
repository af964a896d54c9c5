// SPDX-License-Identifier: Apache-2.0

package poddefault

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

// trouble notes which kinds may not be read any more. Other failures pass by themselves;
// rights that were withdrawn do not come back. Its zero value is ready.
type trouble struct {
	mu     sync.Mutex
	denied map[string]error // by kind
}

func (t *trouble) note(kind string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		delete(t.denied, kind)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		if t.denied == nil {
			t.denied = map[string]error{}
		}
		t.denied[kind] = err
	}
}

// noting is a source whose failures are noted, until it answers again.
func (t *trouble) noting(kind string, from cache.ListerWatcher) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, options)
			t.note(kind, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := source.WatchWithContext(ctx, options)
			t.note(kind, err)
			return events, err
		},
	}
}

// Trouble says what may not be read any more, and is nil if all is well. Pods get what was
// known before.
func (w *Watcher) Trouble() error {
	w.trouble.mu.Lock()
	defer w.trouble.mu.Unlock()
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(w.trouble.denied)) {
		errs = append(errs, w.trouble.denied[kind])
	}
	return errors.Join(errs...)
}
