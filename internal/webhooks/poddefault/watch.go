// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	metadataclient "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/webhooks/internal/cluster"
)

// Watcher is a [Source] that follows the PodDefaults and ClusterPodDefaults of a
// cluster, and the labels of namespaces. It lists and watches them once for all pods,
// compiles each object when it changes, and keeps no more of them than that. When the
// API server is away it goes on with what it knows. See [Watch].
//
// A cluster without the definition of ClusterPodDefaults has none of them: it may be
// installed later.
type Watcher struct {
	index      *Index
	reflectors []*cache.Reflector
	logger     *slog.Logger
	synced     [3]atomic.Bool // PodDefaults, ClusterPodDefaults, namespaces
	loaded     func()
	contact    contact
	gone       gone
	trouble    trouble
	lists      *lists
}

// What is followed, as indexes of synced.
const (
	followsPodDefaults = iota
	followsClusterPodDefaults
	followsNamespaces
)

// Watch prepares a watcher of all namespaces; [Watcher.Run] starts it. The
// credentials in config must be allowed to list and watch poddefaults.kubeflow.org,
// clusterpoddefaults.sallyport.io and namespaces.
func Watch(config *rest.Config, logger *slog.Logger) (*Watcher, error) {
	w := &Watcher{index: NewIndex(), logger: logger, loaded: func() {}, gone: gone{now: time.Now, objects: map[string][]goneObject{}}}
	w.index.strict = true
	config = rest.CopyConfig(config)
	config.Wrap(w.contact.wrap)

	podDefaults, err := cluster.Client(config, kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for PodDefaults: %w", err)
	}
	clusterWide, err := cluster.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for ClusterPodDefaults: %w", err)
	}
	metadataOnly, err := metadataclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for metadata: %w", err)
	}
	w.lists = newLists(w, metadataOnly, podDefaults, clusterWide)
	namespaces := metadataOnly.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})

	// There may be thousands, and each is larger than what is compiled of it.
	w.follow("poddefaults", &kubeflowv1alpha1.PodDefault{}, podDefaultStore{w}, cluster.InPages(
		cache.NewListWatchFromClient(podDefaults, kubeflowv1alpha1.PodDefaultResource, metav1.NamespaceAll, fields.Everything()),
		func(pd *kubeflowv1alpha1.PodDefault) *Compiled { return w.add(pack(pd)) }))
	w.follow("clusterpoddefaults", &sallyportv1alpha1.ClusterPodDefault{}, clusterPodDefaultStore{w},
		ifInstalled(cache.NewListWatchFromClient(clusterWide, sallyportv1alpha1.ClusterPodDefaultResource, metav1.NamespaceAll, fields.Everything()),
			func() runtime.Object { return &sallyportv1alpha1.ClusterPodDefaultList{} }))
	w.follow("namespaces", &metav1.PartialObjectMetadata{}, namespaceStore{w}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return namespaces.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return namespaces.Watch(ctx, options)
		},
	})
	return w, nil
}

func (w *Watcher) follow(name string, example any, store cache.ReflectorStore, from cache.ListerWatcher) {
	w.reflectors = append(w.reflectors, cluster.Reflector(name, w.logger, cluster.Soon, w.trouble.noting(name, from), example, cluster.WithLoaded(store, func() { w.loaded() })))
}

// Run follows all of them until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, reflector := range w.reflectors {
		group.Go(func() { reflector.RunWithContext(ctx) })
	}
	group.Wait()
	return nil
}

// WhenLoaded has loaded called whenever Ready may have become nil. It is for before Run.
func (w *Watcher) WhenLoaded(loaded func()) { w.loaded = loaded }

// Ready is nil once everything was read.
func (w *Watcher) Ready() error {
	for what, name := range [...]string{"PodDefaults are", "ClusterPodDefaults are", "namespaces are"} {
		if !w.synced[what].Load() {
			return fmt.Errorf("%s not read yet (is their CRD installed, and may this server list them?)", name)
		}
	}
	return nil
}

// Select implements [Source].
func (w *Watcher) Select(ctx context.Context, namespace string, pod Labels) ([]*Compiled, error) {
	if err := w.Ready(); err != nil {
		return nil, admission.Unavailable(err, time.Second)
	}
	return w.index.Select(ctx, namespace, pod)
}

// Len is the number of objects of both kinds that are known.
func (w *Watcher) Len() int { return w.index.Len() }

// LastContact is when the API server has sent something the last time: objects, a
// change, or, about once a minute, that there was none. The zero time means never.
func (w *Watcher) LastContact() time.Time { return w.contact.last() }

// set adds an object, or replaces the one of the same name.
func (w *Watcher) set(c *Compiled) {
	w.gone.changed(w.index.get(c.namespace, c.name), c)
	w.index.Set(c)
}

func (w *Watcher) delete(namespace, name string) {
	w.gone.changed(w.index.get(namespace, name), nil)
	w.index.Delete(namespace, name)
}

func (w *Watcher) add(c *Compiled) *Compiled {
	if problem := c.Problem(); problem != nil {
		w.logger.Warn("object can never work and is left out", "object", c.String(), "problem", problem)
	}
	return c
}

// podDefaultStore, clusterPodDefaultStore and namespaceStore are what reflectors write
// to.
type (
	podDefaultStore        struct{ *Watcher }
	clusterPodDefaultStore struct{ *Watcher }
	namespaceStore         struct{ *Watcher }
)

func (s podDefaultStore) Add(obj any) error {
	return of(obj, func(pd *kubeflowv1alpha1.PodDefault) { s.set(s.add(pack(pd))) })
}

func (s podDefaultStore) Update(obj any) error { return s.Add(obj) }

func (s podDefaultStore) Delete(obj any) error {
	return of(obj, func(pd *kubeflowv1alpha1.PodDefault) { s.delete(pd.Namespace, pd.Name) })
}

func (s podDefaultStore) Replace(objects []any, _ string) error {
	all := make([]*Compiled, 0, len(objects))
	for _, obj := range objects {
		if err := of(obj, func(d *cluster.Digest[*Compiled]) { all = append(all, d.Of) }); err != nil {
			return err
		}
	}
	s.goneSince(all, false)
	s.index.Replace(all)
	s.synced[followsPodDefaults].Store(true)
	return nil
}

func (s podDefaultStore) Resync() error { return nil }

func (s clusterPodDefaultStore) Add(obj any) error {
	return of(obj, func(cpd *sallyportv1alpha1.ClusterPodDefault) { s.set(s.add(packCluster(cpd))) })
}

func (s clusterPodDefaultStore) Update(obj any) error { return s.Add(obj) }

func (s clusterPodDefaultStore) Delete(obj any) error {
	return of(obj, func(cpd *sallyportv1alpha1.ClusterPodDefault) { s.delete("", cpd.Name) })
}

func (s clusterPodDefaultStore) Replace(objects []any, _ string) error {
	all := make([]*Compiled, 0, len(objects))
	for _, obj := range objects {
		if err := of(obj, func(cpd *sallyportv1alpha1.ClusterPodDefault) { all = append(all, s.add(packCluster(cpd))) }); err != nil {
			return err
		}
	}
	s.goneSince(all, true)
	s.index.ReplaceCluster(all)
	s.synced[followsClusterPodDefaults].Store(true)
	return nil
}

func (s clusterPodDefaultStore) Resync() error { return nil }

func (s namespaceStore) Add(obj any) error {
	return of(obj, func(ns *metav1.PartialObjectMetadata) { s.index.SetNamespace(ns.Name, ns.Labels) })
}

func (s namespaceStore) Update(obj any) error { return s.Add(obj) }

func (s namespaceStore) Delete(obj any) error {
	return of(obj, func(ns *metav1.PartialObjectMetadata) { s.index.DeleteNamespace(ns.Name) })
}

func (s namespaceStore) Replace(objects []any, _ string) error {
	all := make(map[string]labels.Set, len(objects))
	for _, obj := range objects {
		if err := of(obj, func(ns *metav1.PartialObjectMetadata) { all[ns.Name] = ns.Labels }); err != nil {
			return err
		}
	}
	s.index.ReplaceNamespaces(all)
	s.synced[followsNamespaces].Store(true)
	return nil
}

func (s namespaceStore) Resync() error { return nil }

// of hands an object to use if it is of the type.
func of[T any](obj any, use func(T)) error {
	typed, ok := obj.(T)
	if !ok {
		return fmt.Errorf("expected %T, got %T", typed, obj)
	}
	use(typed)
	return nil
}

var (
	_ cache.ReflectorStore = podDefaultStore{}
	_ cache.ReflectorStore = clusterPodDefaultStore{}
	_ cache.ReflectorStore = namespaceStore{}
)
