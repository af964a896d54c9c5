// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/internal/cluster"
)

// A kind is one of those that the controller follows.
type kind struct {
	name    string
	example runtime.Object
	from    cache.ListerWatcher
	to      cache.ReflectorStore
	// optional is set if there are no objects where the kind is not installed.
	optional bool
}

func (e *epoch) kinds() []kind {
	all := fields.Everything()
	return []kind{
		{
			name: kubeflowv1alpha1.PodDefaultResource, example: &kubeflowv1alpha1.PodDefault{},
			from: cache.NewListWatchFromClient(e.client, kubeflowv1alpha1.PodDefaultResource, metav1.NamespaceAll, all),
			to: store[*kubeflowv1alpha1.PodDefault]{
				set:  func(pd *kubeflowv1alpha1.PodDefault) { e.set(pd.Namespace, pd.Name, FromPodDefault(pd)) },
				gone: func(pd *kubeflowv1alpha1.PodDefault) { e.set(pd.Namespace, pd.Name, nil) },
				replace: func(list []*kubeflowv1alpha1.PodDefault) {
					entries := make(map[types.NamespacedName]*Entry, len(list))
					for _, pd := range list {
						entries[types.NamespacedName{Namespace: pd.Namespace, Name: pd.Name}] = FromPodDefault(pd)
					}
					e.replace(entries, false)
				},
			},
		},
		{
			name: sallyportv1alpha1.ClusterPodDefaultResource, example: &sallyportv1alpha1.ClusterPodDefault{}, optional: true,
			from: cache.NewListWatchFromClient(e.cluster, sallyportv1alpha1.ClusterPodDefaultResource, metav1.NamespaceAll, all),
			to: store[*sallyportv1alpha1.ClusterPodDefault]{
				set:  func(cpd *sallyportv1alpha1.ClusterPodDefault) { e.set("", cpd.Name, FromClusterPodDefault(cpd)) },
				gone: func(cpd *sallyportv1alpha1.ClusterPodDefault) { e.set("", cpd.Name, nil) },
				replace: func(list []*sallyportv1alpha1.ClusterPodDefault) {
					entries := make(map[types.NamespacedName]*Entry, len(list))
					for _, cpd := range list {
						entries[types.NamespacedName{Name: cpd.Name}] = FromClusterPodDefault(cpd)
					}
					e.replace(entries, true)
				},
			},
		},
		{
			name: "namespaces", example: &metav1.PartialObjectMetadata{},
			from: &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return e.Controller.namespaces.List(ctx, options)
				},
				WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
					return e.Controller.namespaces.Watch(ctx, options)
				},
			},
			to: store[*metav1.PartialObjectMetadata]{
				set:  func(ns *metav1.PartialObjectMetadata) { e.setNamespace(ns.Name, namespaceLabels(ns)) },
				gone: func(ns *metav1.PartialObjectMetadata) { e.setNamespace(ns.Name, nil) },
				replace: func(list []*metav1.PartialObjectMetadata) {
					there := make(map[string]bool, len(list))
					for _, ns := range list {
						there[ns.Name] = true
						e.setNamespace(ns.Name, namespaceLabels(ns))
					}
					for _, name := range e.namespaceNames() {
						if !there[name] {
							e.setNamespace(name, nil)
						}
					}
				},
			},
		},
		{
			name: TemplateResource, example: &corev1.PodTemplate{},
			from: cache.NewListWatchFromClient(e.core, TemplateResource, metav1.NamespaceAll,
				fields.OneTermEqualSelector("metadata.name", TemplateName)),
			to: store[*corev1.PodTemplate]{
				set:  func(index *corev1.PodTemplate) { e.setLive(index.Namespace, index) },
				gone: func(index *corev1.PodTemplate) { e.setLive(index.Namespace, nil) },
				replace: func(list []*corev1.PodTemplate) {
					there := make(map[string]bool, len(list))
					for _, index := range list {
						there[index.Namespace] = true
						e.setLive(index.Namespace, index)
					}
					for _, namespace := range e.liveNames() {
						if !there[namespace] {
							e.setLive(namespace, nil)
						}
					}
				},
			},
		},
	}
}

// namespaceLabels is nil for a namespace in which nothing can be made any more.
func namespaceLabels(ns *metav1.PartialObjectMetadata) labels.Set {
	if ns.DeletionTimestamp != nil {
		return nil
	}
	if ns.Labels == nil {
		return labels.Set{}
	}
	return ns.Labels
}

// reflect follows one kind.
func (e *epoch) reflect(ctx context.Context, k kind) {
	from, loaded := k.from, func() { e.loaded(k.name) }
	if k.optional {
		from = cluster.WithAbsent(from, loaded)
	}
	cluster.Reflector(Name+" "+k.name, e.log, 10*time.Second, from, k.example, cluster.WithLoaded(k.to, loaded)).RunWithContext(ctx)
}

// store is what a reflector of one kind writes to.
type store[T runtime.Object] struct {
	set, gone func(T)
	replace   func([]T)
}

func (s store[T]) Add(obj any) error {
	object, ok := obj.(T)
	if !ok {
		return fmt.Errorf("expected %T, got %T", object, obj)
	}
	s.set(object)
	return nil
}

func (s store[T]) Update(obj any) error { return s.Add(obj) }

func (s store[T]) Delete(obj any) error {
	object, ok := obj.(T)
	if !ok {
		return fmt.Errorf("expected %T, got %T", object, obj)
	}
	s.gone(object)
	return nil
}

func (s store[T]) Replace(objects []any, _ string) error {
	all := make([]T, 0, len(objects))
	for _, obj := range objects {
		object, ok := obj.(T)
		if !ok {
			return fmt.Errorf("expected %T, got %T", object, obj)
		}
		all = append(all, object)
	}
	s.replace(all)
	return nil
}

func (s store[T]) Resync() error { return nil }
