// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// pageSize is how many objects a page has.
const pageSize = 500

// inPages lists page by page and holds of each object only what keep makes of it, so that
// no long list is ever in memory as it came. The store's Replace gets a digest for each
// object, its other methods get objects as they are.
func inPages[T runtime.Object, D any](from cache.ListerWatcher, keep func(T) D) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// The API server takes a limit for no version that it may choose itself.
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			options.Limit = pageSize
			all := &digests{}
			// While a page is digested the API server makes the next one.
			group, ctx := errgroup.WithContext(ctx)
			pages := make(chan runtime.Object)
			group.Go(func() error {
				for page := range pages {
					err := meta.EachListItem(page, func(object runtime.Object) error {
						all.Items = append(all.Items, &digest[D]{of: keep(object.(T))})
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
			group.Go(func() (err error) {
				defer close(pages)
				all.ResourceVersion, err = eachPage(ctx, source, options, pages)
				return err
			})
			if err := group.Wait(); err != nil {
				return nil, err
			}
			return all, nil
		},
		WatchFuncWithContext: source.WatchWithContext,
	}
}

// eachPage sends the pages of a list, and returns its version.
func eachPage(ctx context.Context, source cache.ListerWithContext, options metav1.ListOptions, pages chan<- runtime.Object) (version string, err error) {
	for {
		page, err := source.ListWithContext(ctx, options)
		if err != nil {
			return "", err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return "", err
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if options.Continue = about.GetContinue(); options.Continue == "" {
			return about.GetResourceVersion(), nil
		}
	}
}

// A digest is what is held of an object, as an item of a list.
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
