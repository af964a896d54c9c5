// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/webhooks/internal/cluster"
)

// Watcher is a [Source] that follows the namespaces of a cluster. It keeps of each
// what [Project] has. When the API server is away it goes on with what it knows. See
// [Watch].
type Watcher struct {
	index     *Index
	reflector *cache.Reflector
	synced    atomic.Bool
	loaded    func()
}

// Watch prepares a watcher; [Watcher.Run] starts it. The credentials in config must
// be allowed to list and watch namespaces.
func Watch(config *rest.Config, logger *slog.Logger) (*Watcher, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for namespaces: %w", err)
	}
	namespaces := client.Resource(schema.GroupVersionResource(namespaceResource))
	w := &Watcher{index: NewIndex(), loaded: func() {}}
	w.reflector = cluster.Reflector("projects", logger, cluster.Soon,
		&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return namespaces.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return namespaces.Watch(ctx, options)
			},
		},
		&metav1.PartialObjectMetadata{}, cluster.WithLoaded((*watcherStore)(w), func() { w.loaded() }),
	)
	return w, nil
}

// Run follows the namespaces until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	w.reflector.RunWithContext(ctx)
	return nil
}

// WhenLoaded has loaded called whenever Ready may have become nil. It is for before Run.
func (w *Watcher) WhenLoaded(loaded func()) { w.loaded = loaded }

// Ready is nil once all namespaces were read.
func (w *Watcher) Ready() error {
	if !w.synced.Load() {
		return errors.New("namespaces are not read yet (may this server list them?)")
	}
	return nil
}

// Claim implements [Source].
func (w *Watcher) Claim(ctx context.Context, claim Claim) (have int, granted bool, err error) {
	if err := w.Ready(); err != nil {
		return 0, false, admission.Unavailable(err, time.Second)
	}
	return w.index.Claim(ctx, claim)
}

// Len is the number of projects that are somebody's.
func (w *Watcher) Len() int { return w.index.Len() }

// ProjectOf is what counts of a namespace.
func ProjectOf(namespace metav1.Object) Project {
	return Project{
		Name:        namespace.GetName(),
		UID:         namespace.GetUID(),
		Requester:   Requester(namespace.GetAnnotations()),
		Terminating: namespace.GetDeletionTimestamp() != nil,
	}
}

// watcherStore is what the reflector writes to.
type watcherStore Watcher

func (s *watcherStore) Add(obj any) error {
	namespace, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("expected a namespace's metadata, got %T", obj)
	}
	s.index.Set(ProjectOf(namespace))
	return nil
}

func (s *watcherStore) Update(obj any) error { return s.Add(obj) }

func (s *watcherStore) Delete(obj any) error {
	namespace, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("expected a namespace's metadata, got %T", obj)
	}
	s.index.Delete(namespace.Name, namespace.UID)
	return nil
}

func (s *watcherStore) Replace(objects []any, _ string) error {
	all := make([]Project, 0, len(objects))
	for _, obj := range objects {
		namespace, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("expected a namespace's metadata, got %T", obj)
		}
		all = append(all, ProjectOf(namespace))
	}
	s.index.Replace(all)
	s.synced.Store(true)
	return nil
}

func (s *watcherStore) Resync() error { return nil }

var _ cache.ReflectorStore = (*watcherStore)(nil)
