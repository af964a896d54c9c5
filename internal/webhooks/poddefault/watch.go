// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	metadataclient "k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Watcher is a [Source] that follows the PodDefaults and ClusterPodDefaults of a
// cluster, and the labels of namespaces. It is the one place of a process that does:
// controllers read from it too. Each object is compiled when it changes, and only what
// was compiled is held. When the API server is away it goes on with what it knows. See
// [Watch].
//
// A cluster without the definition of ClusterPodDefaults has none of them: it may be
// installed later.
type Watcher struct {
	// PodDefaults, ClusterPodDefaults and Namespaces are for controllers, which are told
	// of a change after reviews are.
	PodDefaults, ClusterPodDefaults *store.Store[*Compiled]
	Namespaces                      *store.Store[*store.Namespace]

	cluster *store.Factory
	index   *Index
	logger  *slog.Logger
	gone    gone
	lists   *lists
}

// Watch prepares a watcher of all namespaces; [Watcher.Run] starts it, and calls loaded
// whenever Ready may have become nil. The credentials of the factory must be allowed to
// list and watch poddefaults.kubeflow.org, clusterpoddefaults.sallyport.io and namespaces.
func Watch(cluster *store.Factory, logger *slog.Logger, loaded func()) (*Watcher, error) {
	podDefaults, err := store.Client(cluster.Config(), kubeflowv1alpha1.GroupVersion, kubeflowv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for PodDefaults: %w", err)
	}
	clusterWide, err := store.Client(cluster.Config(), sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for ClusterPodDefaults: %w", err)
	}
	metadataOnly, err := metadataclient.NewForConfig(cluster.Config())
	if err != nil {
		return nil, fmt.Errorf("client for metadata: %w", err)
	}
	w := newWatcher(logger)
	w.cluster = cluster
	if w.Namespaces, err = cluster.Namespaces(); err != nil {
		return nil, err
	}
	w.lists = newLists(w, metadataOnly, podDefaults, clusterWide)
	w.PodDefaults = store.Follow(cluster, store.Kind[*kubeflowv1alpha1.PodDefault, *Compiled]{
		Name: kubeflowv1alpha1.PodDefaultResource, Example: &kubeflowv1alpha1.PodDefault{}, Keep: pack,
		From: cache.NewListWatchFromClient(podDefaults, kubeflowv1alpha1.PodDefaultResource, metav1.NamespaceAll, fields.Everything()),
	})
	w.ClusterPodDefaults = store.Follow(cluster, store.Kind[*sallyportv1alpha1.ClusterPodDefault, *Compiled]{
		Name: sallyportv1alpha1.ClusterPodDefaultResource, Example: &sallyportv1alpha1.ClusterPodDefault{}, Keep: packCluster, Optional: true,
		From: cache.NewListWatchFromClient(clusterWide, sallyportv1alpha1.ClusterPodDefaultResource, metav1.NamespaceAll, fields.Everything()),
	})
	w.PodDefaults.Handle(store.Handler[*Compiled]{Changed: w.changed, Synced: loaded})
	w.ClusterPodDefaults.Handle(store.Handler[*Compiled]{Changed: w.changed, Synced: loaded})
	w.Namespaces.Handle(store.Handler[*store.Namespace]{Changed: w.namespacesChanged, Synced: loaded})
	return w, nil
}

func newWatcher(logger *slog.Logger) *Watcher {
	w := &Watcher{index: NewIndex(), logger: logger, gone: gone{now: time.Now, objects: map[string][]goneObject{}}}
	w.index.strict = true
	return w
}

// Run follows all of them until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.PodDefaults.Run(ctx) })
	group.Go(func() { w.ClusterPodDefaults.Run(ctx) })
	group.Go(func() { w.Namespaces.Run(ctx) })
	group.Wait()
	return nil
}

// Ready is nil once everything was read.
func (w *Watcher) Ready() error {
	for _, kind := range []struct {
		name string
		read bool
	}{
		{"PodDefaults", w.PodDefaults.HasSynced()},
		{"ClusterPodDefaults", w.ClusterPodDefaults.HasSynced()},
		{"namespaces", w.Namespaces.HasSynced()},
	} {
		if !kind.read {
			return fmt.Errorf("%s are not read yet (is their CRD installed, and may this server list them? sallyport manifests --part crd,rbac prints both)", kind.name)
		}
	}
	return nil
}

// WaitReady returns nil once everything was read, or the error of the context.
func (w *Watcher) WaitReady(ctx context.Context) error {
	for _, synced := range []<-chan struct{}{w.PodDefaults.Synced(), w.ClusterPodDefaults.Synced(), w.Namespaces.Synced()} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-synced:
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

// All are the PodDefaults of a namespace, or the ClusterPodDefaults if it is empty, in the
// order in which they are applied.
func (w *Watcher) All(namespace string) []*Compiled { return w.index.All(namespace) }

// Get returns the object of that name, a ClusterPodDefault if it has no namespace; nil if
// there is none.
func (w *Watcher) Get(name types.NamespacedName) *Compiled {
	if name.Namespace == "" {
		return w.ClusterPodDefaults.Get(name)
	}
	return w.PodDefaults.Get(name)
}

// Len is the number of objects of both kinds that are known.
func (w *Watcher) Len() int { return w.index.Len() }

// LastContact is when the API server has sent something the last time; see
// [store.Factory.LastContact].
func (w *Watcher) LastContact() time.Time { return w.cluster.LastContact() }

// Trouble says what may not be read any more, and is nil if all is well. Pods get what was
// known before.
func (w *Watcher) Trouble() error { return w.cluster.Denied() }

func (w *Watcher) changed(changes []store.Change[*Compiled]) {
	for _, c := range changes {
		if c.Now != nil && c.Now.problem != nil {
			w.logger.Warn("object can never work and is left out", "object", c.Now.String(), "problem", c.Now.problem)
		}
		w.gone.changed(c.Before, c.Now)
	}
	w.index.apply(changes)
}

func (w *Watcher) namespacesChanged(changes []store.Change[*store.Namespace]) {
	for _, c := range changes {
		if c.Now == nil {
			w.index.DeleteNamespace(c.Before.Name)
		} else {
			w.index.SetNamespace(c.Now.Name, c.Now.Labels)
		}
	}
}
