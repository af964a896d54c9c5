// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	metadataclient "k8s.io/client-go/metadata"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Watcher is a [Source] that watches the PodDefaults and ClusterPodDefaults of a
// cluster, and the labels of namespaces. It is the only watch of them in a process:
// controllers read from it too. Each object is compiled when it changes, and only the
// compiled form is kept. While the API server is down, it serves what it has. See
// [Watch].
//
// If the CRD of ClusterPodDefaults is missing there are none; it may be installed
// later.
type Watcher struct {
	// PodDefaults, ClusterPodDefaults and Namespaces are for controllers. They are
	// notified of a change after reviews see it.
	PodDefaults, ClusterPodDefaults *store.Store[*Compiled]
	Namespaces                      *store.Store[*store.Namespace]

	cluster *store.Factory
	index   *Index
	logger  *slog.Logger
	gone    gone
	rolling rolling
	lists   *lists
}

// Watch prepares a watcher of all namespaces. [Watcher.Run] starts it and calls loaded
// whenever Ready may have become nil. The factory's credentials must be allowed to list
// and watch poddefaults.kubeflow.org, clusterpoddefaults.sallyport.io and namespaces.
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
		Name: kubeflowv1alpha1.PodDefaultResource, Example: &kubeflowv1alpha1.PodDefault{},
		Keep: func(pd *kubeflowv1alpha1.PodDefault) *Compiled {
			return pack(pd, w.PodDefaults.Get(types.NamespacedName{Namespace: pd.Namespace, Name: pd.Name}))
		},
		From: store.Source(podDefaults, kubeflowv1alpha1.PodDefaultResource, &kubeflowv1alpha1.PodDefaultList{}),
	})
	w.ClusterPodDefaults = store.Follow(cluster, store.Kind[*sallyportv1alpha1.ClusterPodDefault, *Compiled]{
		Name: sallyportv1alpha1.ClusterPodDefaultResource, Example: &sallyportv1alpha1.ClusterPodDefault{}, Optional: true,
		Keep: func(cpd *sallyportv1alpha1.ClusterPodDefault) *Compiled {
			return packCluster(cpd, w.ClusterPodDefaults.Get(types.NamespacedName{Name: cpd.Name}))
		},
		From: store.Source(clusterWide, sallyportv1alpha1.ClusterPodDefaultResource, &sallyportv1alpha1.ClusterPodDefaultList{}),
	})
	w.PodDefaults.Handle(store.Handler[*Compiled]{Changed: w.changed, Synced: loaded})
	w.ClusterPodDefaults.Handle(store.Handler[*Compiled]{Changed: w.changed, Synced: loaded})
	w.Namespaces.Handle(store.Handler[*store.Namespace]{Changed: w.namespacesChanged, Synced: loaded})
	return w, nil
}

func newWatcher(logger *slog.Logger) *Watcher {
	w := &Watcher{index: NewIndex(), logger: logger, gone: gone{now: time.Now, objects: map[string][]goneObject{}}}
	w.rolling.objects = map[types.NamespacedName]*Compiled{}
	w.index.strict = true
	return w
}

// Run watches until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.PodDefaults.Run(ctx) })
	group.Go(func() { w.ClusterPodDefaults.Run(ctx) })
	group.Go(func() { w.Namespaces.Run(ctx) })
	group.Wait()
	return nil
}

// Ready returns nil once everything has been read.
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

// WaitReady returns nil once everything has been read, or the context's error.
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

func (w *Watcher) labelsOf(namespace string) labels.Set { return w.index.labelsOf(namespace) }

// All returns the PodDefaults of a namespace, or the ClusterPodDefaults if it is empty,
// in order of application.
func (w *Watcher) All(namespace string) []*Compiled { return w.index.All(namespace) }

// Get returns the named object, a ClusterPodDefault if there is no namespace, or nil.
func (w *Watcher) Get(name types.NamespacedName) *Compiled {
	if name.Namespace == "" {
		return w.ClusterPodDefaults.Get(name)
	}
	return w.PodDefaults.Get(name)
}

// Len returns the number of known objects of both kinds.
func (w *Watcher) Len() int { return w.index.Len() }

// LastContact returns when the API server last sent something; see
// [store.Factory.LastContact].
func (w *Watcher) LastContact() time.Time { return w.cluster.LastContact() }

// Trouble returns which reads the API server no longer permits, or nil. Pods get what
// was known before.
func (w *Watcher) Trouble() error { return w.cluster.Denied() }

func (w *Watcher) changed(changes []store.Change[*Compiled]) {
	for _, c := range changes {
		if c.Now != nil && c.Now.problem != nil {
			w.logger.Warn("object can never work and is left out", "object", c.Now.String(), "problem", c.Now.problem)
		}
		w.gone.changed(c.Before, c.Now)
		w.rolling.changed(c.Before, c.Now)
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
