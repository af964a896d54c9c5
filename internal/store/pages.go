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

// pageSize is the limit of a list request.
const pageSize = 500

// inPages lists page by page and keeps only the result of keep for each object, so that
// no complete list is ever in memory. The store's Replace gets a digest per object, its
// other methods get objects.
func inPages[T runtime.Object, D any](from cache.ListerWatcher, keep func(T) D) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// The API server ignores the limit if it may serve any version from its
			// cache.
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			options.Limit = pageSize
			all := &digests{}
			for {
				page, err := source.ListWithContext(ctx, options)
				if err != nil {
					return nil, err
				}
				about, err := meta.ListAccessor(page)
				if err != nil {
					return nil, err
				}
				err = meta.EachListItem(page, func(object runtime.Object) error {
					all.Items = append(all.Items, &digest[D]{of: keep(object.(T))})
					return nil
				})
				if err != nil {
					return nil, err
				}
				all.ResourceVersion = about.GetResourceVersion()
				if options.Continue = about.GetContinue(); options.Continue == "" {
					return all, nil
				}
			}
		},
		WatchFuncWithContext: source.WatchWithContext,
	}
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
