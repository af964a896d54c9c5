// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Watch is a [Source] that watches the stable revisions of a cluster, and no others: there
// are none of objects without spec.rollout. While the API server is down, it serves what it
// has. If the definition of a kind is missing there are none; it may be installed later.
type Watch struct {
	kinds    [2]*kind // of PodDefaults, of ClusterPodDefaults
	recorded bool
	changed  func(owner types.NamespacedName)
	logger   *slog.Logger

	mu     sync.RWMutex
	known  map[Owner][]*Record // usable, the latest first
	owners control.Listeners[types.NamespacedName]
}

// kind is a store, and whether the API server has ever served the kind.
type kind struct {
	*store.Store[*Record]
	name   string
	served atomic.Bool
}

// NewWatch prepares a watch. Recorded says whether a controller records revisions. Changed is
// called with the owner of revisions that have changed; it must not block.
func NewWatch(cluster *store.Factory, recorded bool, logger *slog.Logger, changed func(owner types.NamespacedName)) (*Watch, error) {
	client, err := store.Client(cluster.Config(), sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("client for revisions: %w", err)
	}
	w := &Watch{recorded: recorded, changed: changed, logger: logger, known: map[Owner][]*Record{}}
	of := &kind{name: sallyportv1alpha1.PodDefaultRevisionResource}
	of.Store = store.Follow(cluster, store.Kind[*Object, *Record]{
		Name: of.name, Example: &Object{}, Optional: true, Keep: Prove,
		From: of.stableOnes(store.Source(client, of.name, &sallyportv1alpha1.PodDefaultRevision{})),
	})
	ofCluster := &kind{name: sallyportv1alpha1.ClusterPodDefaultRevisionResource}
	ofCluster.Store = store.Follow(cluster, store.Kind[*sallyportv1alpha1.ClusterPodDefaultRevision, *Record]{
		Name: ofCluster.name, Example: &sallyportv1alpha1.ClusterPodDefaultRevision{}, Optional: true,
		Keep: func(o *sallyportv1alpha1.ClusterPodDefaultRevision) *Record {
			return Prove(&Object{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, RevisionContent: o.RevisionContent})
		},
		From: ofCluster.stableOnes(store.Source(client, ofCluster.name, &sallyportv1alpha1.ClusterPodDefaultRevision{})),
	})
	w.kinds = [2]*kind{of, ofCluster}
	for _, k := range w.kinds {
		k.Handle(store.Handler[*Record]{Changed: w.apply})
	}
	return w, nil
}

// stableOnes selects stable revisions, and notes that the API server serves the kind.
func (k *kind) stableOnes(from cache.ListerWatcher) cache.ListerWatcher {
	source := cache.ToListerWatcherWithContext(from)
	return store.Limited(source.ListWithContext, source.WatchWithContext, func(o *metav1.ListOptions) { o.LabelSelector = StableSelector }, func(_ context.Context, err error) {
		if err == nil {
			k.served.Store(true)
		}
	})
}

// Run watches until the context ends.
func (w *Watch) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, k := range w.kinds {
		group.Go(func() { k.Store.Run(ctx) })
	}
	group.Wait()
}

// Replace replaces all that is known, as a list does.
func (w *Watch) Replace(ofPodDefaults, ofClusterPodDefaults []*Record) {
	w.kinds[0].Store.Replace(ofPodDefaults)
	w.kinds[1].Store.Replace(ofClusterPodDefaults)
}

// Ready returns nil once everything has been read.
func (w *Watch) Ready() error {
	for _, k := range w.kinds {
		if !k.HasSynced() {
			return fmt.Errorf("%s are not read yet (may this server list them? sallyport manifests --part rbac prints its rights)", k.name)
		}
	}
	return nil
}

// Synced are closed once everything has been read.
func (w *Watch) Synced() []<-chan struct{} {
	return []<-chan struct{}{w.kinds[0].Store.Synced(), w.kinds[1].Store.Synced()}
}

// HandleSynced calls synced when a kind has been read for the first time.
func (w *Watch) HandleSynced(synced func()) {
	for _, k := range w.kinds {
		k.Handle(store.Handler[*Record]{Changed: func([]store.Change[*Record]) {}, Synced: synced})
	}
}

// Stable implements [Source].
func (w *Watch) Stable(owner Owner) *Record {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return StableAmong(w.known[owner])
}

// Keeps implements [Source]. It stays true if the definition of the kind is deleted: what was
// stable then stays so, as far as replicas remember it.
func (w *Watch) Keeps(namespace string) bool {
	of := w.kinds[0]
	if namespace == "" {
		of = w.kinds[1]
	}
	return w.recorded && of.served.Load()
}

// Handle calls changed after the function that [NewWatch] has got, until remove is called.
func (w *Watch) Handle(changed func(owner types.NamespacedName)) (remove func()) {
	return w.owners.Add(changed)
}

func (w *Watch) apply(changes []store.Change[*Record]) {
	owners := map[types.NamespacedName]bool{}
	w.mu.Lock()
	for _, c := range changes {
		for _, r := range []*Record{c.Before, c.Now} {
			if r != nil {
				owners[types.NamespacedName{Namespace: r.Owner.Namespace, Name: r.OwnerName}] = true
			}
		}
		if c.Before != nil {
			rest := slices.DeleteFunc(slices.Clone(w.known[c.Before.Owner]), func(r *Record) bool { return r == c.Before })
			if w.known[c.Before.Owner] = rest; len(rest) == 0 {
				delete(w.known, c.Before.Owner)
			}
		}
		if c.Now != nil && c.Now.Problem == nil {
			w.known[c.Now.Owner], _ = Of(c.Now.Owner, append(slices.Clone(w.known[c.Now.Owner]), c.Now))
		}
	}
	w.mu.Unlock()
	for _, c := range changes {
		if c.Now != nil && c.Now.Problem != nil {
			w.logger.Warn("revision is ignored", "revision", c.Now.String(), "problem", c.Now.Problem)
		}
	}
	for owner := range owners {
		w.changed(owner)
		w.owners.Tell(owner)
	}
}
