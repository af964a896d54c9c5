// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Client makes a client of one group and version, whose types add registers. It speaks
// JSON, as custom resources do.
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

// Soon is how long a reflector waits at most for the next try if reviews are answered from
// what it reads.
const Soon = 5 * time.Second

// Reflector makes a reflector that waits 200 ms after a failure, and longer after each
// further one, up to longest; jitter keeps replicas from coming back all at once. It
// lists before it watches: to get the first 10,000 objects one by one from a watch takes
// twice the time, here and in the API server, though a list as a whole takes more memory.
func Reflector(name string, logger *slog.Logger, longest time.Duration, from cache.ListerWatcher, example any, store cache.ReflectorStore) *cache.Reflector {
	klogger := logr.FromSlogHandler(logger.Handler())
	return cache.NewReflectorWithOptions(listing{cache.ToListerWatcherWithContext(from)}, example, store, cache.ReflectorOptions{
		Name:    name,
		Logger:  &klogger,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 20, Cap: longest},
	})
}

// listing is a source that is listed before it is watched.
type listing struct{ cache.ListerWatcherWithContext }

// IsWatchListSemanticsUnSupported is asked by the reflector.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// List implements [cache.Lister].
func (l listing) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch implements [cache.Watcher].
func (l listing) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}
