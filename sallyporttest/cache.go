// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting/cached"
)

// CacheContext returns a context whose [sallyport.Cache] holds the objects, without an API
// server. The cache has the kinds, indexes and transforms that the application declares with
// [sallyport.WithCache], and runs the same code. Objects of other kinds fail the test. Call
// functions with the context, or set it in a [Case]. It ends with the test.
func CacheContext(t testing.TB, app *sallyport.App, objects ...client.Object) context.Context {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	reader, ended, err := cacheOf(ctx, app, objects)
	if err != nil {
		stop()
		t.Fatalf("sallyporttest.CacheContext: %v", err)
	}
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return cached.NewContext(t.Context(), reader)
}

// cacheOf fills a cache with the objects and runs it until ctx ends.
func cacheOf(ctx context.Context, app *sallyport.App, objects []client.Object) (reader client.Reader, ended <-chan struct{}, err error) {
	byKind, err := sorted(app, objects)
	if err != nil {
		return nil, nil, err
	}
	scheme, mapper := app.Scheme(), meta.NewDefaultRESTMapper(nil)
	options := cache.Options{Scheme: scheme, Mapper: mapper, ByObject: map[client.Object]cache.ByObject{}}
	for gvk := range byKind {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	for _, kind := range app.Caches() {
		options.ByObject[kind.Object] = cache.ByObject{Transform: kind.Transform, UnsafeDisableDeepCopy: kind.UnsafeDisableDeepCopy}
	}
	options.NewInformer = func(_ toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		gvk, _ := apiutil.GVKForObject(object, scheme) // sorted has checked it
		return toolscache.NewSharedIndexInformer(fixed(byKind[gvk]), object, resync, indexers)
	}
	filled, err := cache.New(&rest.Config{}, options)
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range app.Caches() {
		if _, err := filled.GetInformer(ctx, kind.Object, cache.BlockUntilSynced(false)); err != nil {
			return nil, nil, err
		}
		for name, values := range kind.Indexes {
			if err := filled.IndexField(ctx, kind.Object, name, values); err != nil {
				return nil, nil, err
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = filled.Start(ctx) // always nil
	}()
	filled.WaitForCacheSync(ctx)
	reader, err = cached.NewReader(scheme, app.Caches(), filled)
	return reader, done, err
}

// sorted returns the objects by kind. All of the kinds are cached.
func sorted(app *sallyport.App, objects []client.Object) (map[schema.GroupVersionKind][]client.Object, error) {
	byKind := map[schema.GroupVersionKind][]client.Object{}
	for _, kind := range app.Caches() {
		gvk, err := apiutil.GVKForObject(kind.Object, app.Scheme())
		if err != nil {
			return nil, err
		}
		byKind[gvk] = nil
	}
	declared, err := cached.NewReader(app.Scheme(), app.Caches(), nothing{})
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := declared.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			return nil, err
		}
		gvk, err := apiutil.GVKForObject(object, app.Scheme())
		if err != nil {
			return nil, err
		}
		own, _ := object.DeepCopyObject().(client.Object) // the transform may change it
		byKind[gvk] = append(byKind[gvk], own)
	}
	return byKind, nil
}

// nothing is a reader without objects.
type nothing struct{ client.Reader }

func (nothing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// fixed lists the same objects each time. Its watch has no events.
func fixed(objects []client.Object) toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for _, object := range objects {
				list.Items = append(list.Items, runtime.RawExtension{Object: object})
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, listsOnly{})
}

// listsOnly makes an informer list first instead of waiting for a watch that begins with all
// objects.
type listsOnly struct{}

// IsWatchListSemanticsUnSupported implements client-go's optional interface.
func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }
