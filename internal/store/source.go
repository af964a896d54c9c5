// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/internal/json/decode"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// maxDepth limits the nesting of a list. The API server stores no deeper object.
const maxDepth = 10_000

// Source lists and watches a resource in all namespaces. List is an empty list of it.
//
// client-go's decoder reads a page three times, which is half of the CPU time of starting with
// 10,000 PodDefaults. Changes come one at a time, and it decodes them.
func Source(client *rest.RESTClient, resource string, list runtime.Object) cache.ListerWatcher {
	typ := decode.For(reflect.TypeOf(list).Elem())
	watched := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			result := client.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx)
			if err := result.Error(); err != nil {
				return nil, err
			}
			raw, err := result.Raw()
			if err != nil {
				return nil, err
			}
			decoded, err := decodeList(typ, raw)
			if err != nil {
				return nil, fmt.Errorf("decoding the list of %s: %w", resource, err)
			}
			return decoded, nil
		},
		WatchFuncWithContext: watched.WatchWithContext,
	}
}

// decodeList decodes a list that came over the network. Errors repeat none of its content.
func decodeList(typ *decode.Type, raw []byte) (runtime.Object, error) {
	if err := rawjson.Check(raw, maxDepth, nil); err != nil {
		return nil, err
	}
	list, err := typ.New(raw, nil)
	if err != nil {
		where, offset, problem := decode.Describe(err)
		return nil, fmt.Errorf("%s, at byte %d: %s", where, offset, problem)
	}
	return list.(runtime.Object), nil
}
