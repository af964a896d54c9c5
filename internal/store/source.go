// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/internal/json/decode"
)

// Source lists and watches a resource in all namespaces, for [Kind] and [Each]: its lists are read as they arrive.
// Item is an object of the resource.
//
// client-go's decoder reads a list three times, which is half of the CPU time of starting with
// 10,000 PodDefaults. Changes come one at a time, and it decodes them.
func Source(client *rest.RESTClient, resource string, item runtime.Object) cache.ListerWatcher {
	typ := decode.For(reflect.TypeOf(item).Elem())
	watched := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.Limit = 0
			return stream(ctx, client.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec), resource, func(raw []byte, _ bool) (runtime.Object, error) {
				return decodeItem(typ, raw)
			})
		},
		WatchFuncWithContext: watched.WatchWithContext,
	}
}

// decodeItem decodes an object that came over the network. Errors repeat none of its content.
func decodeItem(typ *decode.Type, raw []byte) (runtime.Object, error) {
	object, err := typ.New(raw, nil)
	if err != nil {
		where, offset, problem := decode.Describe(err)
		return nil, fmt.Errorf("%s, at byte %d: %s", where, offset, problem)
	}
	return object.(runtime.Object), nil
}

// Limited lists and watches with functions, such as those of a client, what limit selects. Result gets the
// error of each request, nil for one that was answered.
func Limited[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error), watches func(context.Context, metav1.ListOptions) (watch.Interface, error),
	limit func(*metav1.ListOptions), result func(context.Context, error),
) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			limit(&options)
			out, err := list(ctx, options)
			result(ctx, err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			limit(&options)
			out, err := watches(ctx, options)
			result(ctx, err)
			return out, err
		},
	}
}
