// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// askAgain is how long a missing definition is assumed to stay missing.
const askAgain = 10 * time.Second

// ifInstalled treats a kind that the API server does not serve as empty, and retries
// from time to time. Nothing waits for a definition that an older installation lacks.
func ifInstalled(from cache.ListerWatcher) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, options)
			if apierrors.IsNotFound(err) {
				return &metav1.PartialObjectMetadataList{}, nil
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := source.WatchWithContext(ctx, options)
			if apierrors.IsNotFound(err) && (options.SendInitialEvents == nil || !*options.SendInitialEvents) {
				return newQuiet(ctx), nil
			}
			return w, err
		},
	}
}

// quiet is a watch without events that ends when it is time to retry.
type quiet struct {
	events chan watch.Event
	stop   context.CancelFunc
}

func newQuiet(ctx context.Context) *quiet {
	ctx, stop := context.WithTimeout(ctx, askAgain)
	q := &quiet{make(chan watch.Event), stop}
	context.AfterFunc(ctx, func() { close(q.events) })
	return q
}

// Stop implements [watch.Interface].
func (q *quiet) Stop() { q.stop() }

// ResultChan implements [watch.Interface].
func (q *quiet) ResultChan() <-chan watch.Event { return q.events }
