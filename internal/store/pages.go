// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// pageSize is the limit of a list request. An object of a page of 500 takes the API server half as
// long again, and larger pages than these take no less.
const pageSize = 1000

// inPages lists page by page and keeps only the result of keep for each object, so that
// no complete list is ever in memory: one page is fetched while the one before is kept.
// The store's Replace gets a digest per object, its other methods get objects.
func inPages[T runtime.Object, D any](from cache.ListerWatcher, keep func(T) D) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// The API server ignores the limit if it may serve any version from its
			// cache.
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			all := &digests{}
			var err error
			all.ResourceVersion, err = eachPage(ctx, source, options, func(object runtime.Object) error {
				all.Items = append(all.Items, &digest[D]{of: keep(object.(T))})
				return nil
			})
			if err != nil {
				return nil, err
			}
			return all, nil
		},
		WatchFuncWithContext: source.WatchWithContext,
	}
}

// Each lists objects page by page, and visits them. Visit must not retain an object itself.
func Each[T runtime.Object](ctx context.Context, from cache.ListerWatcher, visit func(T)) error {
	_, err := eachPage(ctx, cache.ToListerWatcherWithContext(from), metav1.ListOptions{}, func(object runtime.Object) error {
		visit(object.(T))
		return nil
	})
	return err
}

// eachPage visits the objects of a list, and returns the list's resource version. If the list is not a [streamed] one, it
// fetches one page while the one before is visited.
func eachPage(ctx context.Context, from cache.ListerWithContext, options metav1.ListOptions, visit func(runtime.Object) error) (resourceVersion string, err error) {
	options.Limit = pageSize
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for next := fetch(ctx, from, options); next != nil; {
		got := <-next
		if got.err != nil {
			return "", got.err
		}
		if all, ok := got.list.(*streamed); ok {
			about, err := all.each(visit)
			if err != nil {
				return "", err
			}
			next, resourceVersion = nil, about.ResourceVersion
			if options.Continue = about.Continue; options.Continue != "" { // of a server that has a limit of its own
				next = fetch(ctx, from, options)
			}
			continue
		}
		about, err := meta.ListAccessor(got.list)
		if err != nil {
			return "", err
		}
		next = nil
		if options.Continue = about.GetContinue(); options.Continue != "" {
			next = fetch(ctx, from, options)
		}
		resourceVersion = about.GetResourceVersion()
		if err := meta.EachListItem(got.list, visit); err != nil {
			return "", err
		}
	}
	return resourceVersion, nil
}

// A page is the answer to a list request.
type page struct {
	list runtime.Object
	err  error
}

// fetch requests a page. The channel gets it, or the error.
func fetch(ctx context.Context, from cache.ListerWithContext, options metav1.ListOptions) <-chan page {
	fetched := make(chan page, 1)
	go func() {
		list, err := from.ListWithContext(ctx, options)
		fetched <- page{list, err}
	}()
	return fetched
}

// A digest is the kept part of an object, as a list item.
type digest[D any] struct{ of D }

// GetObjectKind implements [runtime.Object].
func (*digest[D]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object]. Digests never change.
func (d *digest[D]) DeepCopyObject() runtime.Object { return d }

// digests are a list.
type digests struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements [runtime.Object].
func (d *digests) DeepCopyObject() runtime.Object {
	c := *d
	return &c
}
