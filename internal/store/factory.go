// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Factory creates the stores of a process that answer reviews. It records when the API
// server last responded, and what it does not permit this process to read.
type Factory struct {
	config  *rest.Config
	logger  *slog.Logger
	contact contact
	denied  denied

	mu          sync.Mutex
	namespaces  *Store[*Namespace]
	annotations []string // of namespaces, to cache
}

// NewFactory does not call the API server.
func NewFactory(config *rest.Config, logger *slog.Logger) *Factory {
	f := &Factory{config: rest.CopyConfig(config), logger: logger}
	f.config.Wrap(f.contact.wrap)
	return f
}

// Config is the client configuration, which records the API server's responses.
func (f *Factory) Config() *rest.Config { return f.config }

// LastContact is when the API server last sent something: objects, a change, or a bookmark
// about once a minute. The zero time means never.
func (f *Factory) LastContact() time.Time { return f.contact.last() }

// Denied returns an error about what this process is no longer permitted to read. The
// stores keep serving the cached objects.
func (f *Factory) Denied() error { return f.denied.err() }

// Follow returns a store whose failures the factory records.
func Follow[T runtime.Object, O Object](f *Factory, kind Kind[T, O]) *Store[O] {
	kind.From = f.denied.noting(kind.Name, kind.From)
	return New(kind, f.logger)
}

// Namespace is the cached part of a namespace.
type Namespace struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          labels.Set
	Annotations     map[string]string // the requested ones
	Terminating     bool
}

// Identity implements [Object].
func (n *Namespace) Identity() Identity {
	return Identity{types.NamespacedName{Name: n.Name}, n.UID, n.ResourceVersion}
}

// Namespaces is the shared store of namespaces. It caches the annotations that were
// requested before it runs.
func (f *Factory) Namespaces(annotations ...string) (*Store[*Namespace], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.annotations = append(f.annotations, annotations...)
	if f.namespaces != nil {
		return f.namespaces, nil
	}
	client, err := metadata.NewForConfig(f.config)
	if err != nil {
		return nil, fmt.Errorf("client for namespaces: %w", err)
	}
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	f.namespaces = Follow(f, Kind[*metav1.PartialObjectMetadata, *Namespace]{
		Name: "namespaces", Example: &metav1.PartialObjectMetadata{}, Keep: f.keepNamespace,
		From: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return namespaces.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return namespaces.Watch(ctx, options)
			},
		},
	})
	return f.namespaces, nil
}

func (f *Factory) keepNamespace(from *metav1.PartialObjectMetadata) *Namespace {
	f.mu.Lock()
	annotations := slices.Clone(f.annotations)
	f.mu.Unlock()
	n := &Namespace{
		Name: from.Name, UID: from.UID, ResourceVersion: from.ResourceVersion,
		Labels: labels.Set{}, Terminating: from.DeletionTimestamp != nil,
	}
	if from.Labels != nil {
		n.Labels = from.Labels
	}
	for _, key := range annotations {
		if value, ok := from.Annotations[key]; ok {
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[key] = value
		}
	}
	return n
}

func identify(object runtime.Object) (Identity, error) {
	about, err := meta.Accessor(object)
	if err != nil {
		return Identity{}, err
	}
	return Identity{types.NamespacedName{Namespace: about.GetNamespace(), Name: about.GetName()}, about.GetUID(), about.GetResourceVersion()}, nil
}
