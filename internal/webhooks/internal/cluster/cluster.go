// SPDX-License-Identifier: Apache-2.0

// Package cluster is what ready-made webhooks share that follow objects of a cluster.
package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Soon is how long reflectors wait at most for the next try that read what reviews are
// answered from.
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

// WithAbsent calls absent whenever the API server does not know the kind of what is
// listed. The list fails all the same, and is tried again.
func WithAbsent(from cache.ListerWatcher, absent func()) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, options)
			if apierrors.IsNotFound(err) {
				absent()
			}
			return list, err
		},
		WatchFuncWithContext: source.WatchWithContext,
	}
}

// WithLoaded calls loaded whenever all that there is has been written to the store.
func WithLoaded(store cache.ReflectorStore, loaded func()) cache.ReflectorStore {
	return loadedStore{store, loaded}
}

type loadedStore struct {
	cache.ReflectorStore
	loaded func()
}

// Replace implements [cache.ReflectorStore].
func (s loadedStore) Replace(objects []any, resourceVersion string) error {
	err := s.ReflectorStore.Replace(objects, resourceVersion)
	if err == nil {
		s.loaded()
	}
	return err
}

// listing is a source that is listed.
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

// Leader tells which of several replicas does what only one shall do.
type Leader interface {
	Leading() bool
	// Changed returns a channel that is closed when Leading changes next; nil if never.
	Changed() <-chan struct{}
}

// WhileLeading runs lead whenever this replica begins to lead, with a context that ends
// when it does not any more, until ctx ends. It returns when lead has returned.
func WhileLeading(ctx context.Context, leader Leader, lead func(context.Context)) {
	for ctx.Err() == nil {
		changed := leader.Changed()
		if !leader.Leading() {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		leading, stop := context.WithCancel(ctx)
		go func() {
			defer stop()
			for leader.Leading() {
				changed := leader.Changed()
				if !leader.Leading() {
					return
				}
				select {
				case <-leading.Done():
					return
				case <-changed:
				}
			}
		}()
		lead(leading)
		stop()
	}
}
