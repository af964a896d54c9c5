// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Client returns a JSON client for one group and version. Add registers its types.
func Client(config *rest.Config, version schema.GroupVersion, add func(*runtime.Scheme) error) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// Soon is the maximum retry delay for reflectors whose objects answer reviews.
const Soon = 5 * time.Second

// Reflector returns a reflector whose retry delay grows from 200 ms up to longest, with
// jitter to spread replicas. It lists before it watches: a streaming list of 10,000
// objects takes twice the time, here and in the API server, although a plain list takes
// more memory.
func Reflector(name string, longest time.Duration, from cache.ListerWatcher, example any, store cache.ReflectorStore) *cache.Reflector {
	options := cache.ReflectorOptions{Name: name}
	// client-go 0.35 lacks this field: there the delay grows from 800 ms up to 30 s.
	if field := reflect.ValueOf(&options).Elem().FieldByName("Backoff"); field.IsValid() {
		field.Set(reflect.ValueOf(&wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 20, Cap: longest}))
	}
	return cache.NewReflectorWithOptions(listFirst{cache.ToListerWatcherWithContext(from)}, example, store, options)
}

// listFirst is a source that is listed before it is watched.
type listFirst struct{ cache.ListerWatcherWithContext }

// IsWatchListSemanticsUnSupported tells the reflector to list.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// List implements [cache.Lister].
func (l listFirst) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch implements [cache.Watcher].
func (l listFirst) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}
