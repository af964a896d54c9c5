// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	metadataclient "k8s.io/client-go/metadata"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Watcher is a [match.Source] that watches the PodDefaults and ClusterPodDefaults of a
// cluster, Exemptions from them, and the labels of namespaces. It is the only watch of them in a process:
// controllers read from it too. Each object is compiled when it changes, and only the
// compiled form is kept. While the API server is down, it serves what it has. See
// [Watch].
//
// If the CRD of ClusterPodDefaults is missing there are none; it may be installed
// later.
type Watcher struct {
	// PodDefaults, ClusterPodDefaults and Namespaces are for controllers. They are
	// notified of a change after reviews see it.
	PodDefaults, ClusterPodDefaults *store.Store[*plan.Plan]
	Namespaces                      *store.Store[*store.Namespace]
	ExemptionStore                  *store.Store[*exempt.Record]
	// Revisions are the stable revisions of objects with spec.rollout.
	Revisions *revision.Watch

	*plans
	cluster     *store.Factory
	logger      *slog.Logger
	gone        gone
	lists       *lists
	secretWatch *secretWatch // nil if objects may not select Secrets
}

// WatchOptions says what a [Watcher] reads beside the objects.
type WatchOptions struct {
	// DataConnections is a label selector of the Secrets whose metadata is read; empty for none.
	DataConnections string
	// Exempts makes Exemptions count. They are read in any case.
	Exempts bool
	// Recorded says that a controller records revisions: without, only rollouts of which the
	// stable revision is known are in progress.
	Recorded bool
}

// Watch prepares a watcher of all namespaces. [Watcher.Run] starts it and calls loaded
// whenever Ready may have become nil. The factory's credentials must be allowed to list
// and watch poddefaults.kubeflow.org, clusterpoddefaults.sallyport.io, both kinds of
// revisions, exemptions.sallyport.io and namespaces, and Secrets if [WatchOptions].DataConnections is not empty.
func Watch(cluster *store.Factory, options WatchOptions, logger *slog.Logger, loaded func()) (*Watcher, error) {
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
	w := &Watcher{cluster: cluster, plans: newPlans(), logger: logger, gone: gone{now: time.Now, objects: map[string][]goneObject{}}}
	w.Strict = true
	if w.Namespaces, err = cluster.Namespaces(); err != nil {
		return nil, err
	}
	w.lists = newLists(w.catchUp)
	w.lists.metadata, w.lists.podDefaults, w.lists.cluster = metadataOnly, podDefaults, clusterWide
	if w.Revisions, err = revision.NewWatch(cluster, options.Recorded, logger, w.restage); err != nil {
		return nil, err
	}
	w.PodDefaults = store.Follow(cluster, store.Kind[*kubeflowv1alpha1.PodDefault, *plan.Plan]{
		Name: kubeflowv1alpha1.PodDefaultResource, Example: &kubeflowv1alpha1.PodDefault{},
		Keep: func(pd *kubeflowv1alpha1.PodDefault) *plan.Plan {
			return plan.Pack(pd, w.PodDefaults.Get(types.NamespacedName{Namespace: pd.Namespace, Name: pd.Name}), w.Revisions)
		},
		From: store.Source(podDefaults, kubeflowv1alpha1.PodDefaultResource, &kubeflowv1alpha1.PodDefault{}),
	})
	w.ClusterPodDefaults = store.Follow(cluster, store.Kind[*sallyportv1alpha1.ClusterPodDefault, *plan.Plan]{
		Name: sallyportv1alpha1.ClusterPodDefaultResource, Example: &sallyportv1alpha1.ClusterPodDefault{}, Optional: true,
		Keep: func(cpd *sallyportv1alpha1.ClusterPodDefault) *plan.Plan {
			return plan.PackCluster(cpd, w.ClusterPodDefaults.Get(types.NamespacedName{Name: cpd.Name}), w.Revisions)
		},
		From: store.Source(clusterWide, sallyportv1alpha1.ClusterPodDefaultResource, &sallyportv1alpha1.ClusterPodDefault{}),
	})
	w.ExemptionStore = store.Follow(cluster, store.Kind[*sallyportv1alpha1.Exemption, *exempt.Record]{
		Name: sallyportv1alpha1.ExemptionResource, Example: &sallyportv1alpha1.Exemption{}, Optional: true, Keep: exempt.Keep,
		From: store.Source(clusterWide, sallyportv1alpha1.ExemptionResource, &sallyportv1alpha1.Exemption{}),
	})
	w.secrets.unknown = func() (problem, fault error) { return errConnectionsOff, nil }
	if options.DataConnections != "" {
		w.secretWatch = watchSecrets(metadataOnly, options.DataConnections, w, loaded)
		w.secrets.unknown = w.secretWatch.unknown
	}
	w.PodDefaults.Handle(store.Handler[*plan.Plan]{Changed: w.changed, Synced: loaded})
	w.ClusterPodDefaults.Handle(store.Handler[*plan.Plan]{Changed: w.changed, Synced: loaded})
	w.Namespaces.Handle(store.Handler[*store.Namespace]{Changed: w.namespacesChanged, Synced: loaded})
	exempting := store.Handler[*exempt.Record]{Changed: func([]store.Change[*exempt.Record]) {}, Synced: loaded}
	if options.Exempts {
		exempting.Changed = w.exempted
	}
	w.ExemptionStore.Handle(exempting)
	w.Revisions.HandleSynced(loaded)
	return w, nil
}

// Run watches until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.Namespaces.Run(ctx) })
	group.Go(func() { w.ExemptionStore.Run(ctx) })
	if w.secretWatch != nil {
		group.Go(func() { w.secretWatch.Run(ctx) })
	}
	group.Go(func() { w.Revisions.Run(ctx) })
	for _, synced := range w.Revisions.Synced() { // objects are compiled with what is known of their revisions
		select {
		case <-ctx.Done():
		case <-synced:
		}
	}
	group.Go(func() { w.PodDefaults.Run(ctx) })
	group.Go(func() { w.ClusterPodDefaults.Run(ctx) })
	group.Wait()
	return nil
}

// Ready returns nil once everything has been read.
func (w *Watcher) Ready() error {
	if err := w.Revisions.Ready(); err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		read bool
	}{
		{"PodDefaults", w.PodDefaults.HasSynced()},
		{"ClusterPodDefaults", w.ClusterPodDefaults.HasSynced()},
		{"namespaces", w.Namespaces.HasSynced()},
		{"Exemptions", w.ExemptionStore.HasSynced()},
	} {
		if !kind.read {
			return fmt.Errorf("%s are not read yet (is their CRD installed, and may this server list them? sallyport manifests --part crd,rbac prints both)", kind.name)
		}
	}
	if w.secretWatch != nil {
		select {
		case <-w.secretWatch.decided:
		default:
			return errors.New("secrets are not read yet")
		}
	}
	return nil
}

// WaitReady returns nil once everything has been read, or the context's error.
func (w *Watcher) WaitReady(ctx context.Context) error {
	all := append(w.Revisions.Synced(), w.PodDefaults.Synced(), w.ClusterPodDefaults.Synced(), w.Namespaces.Synced(), w.ExemptionStore.Synced())
	if w.secretWatch != nil {
		all = append(all, w.secretWatch.decided)
	}
	for _, synced := range all {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-synced:
		}
	}
	return nil
}

// Select implements [match.Source].
func (w *Watcher) Select(_ context.Context, namespace string, pod podmeta.Labels) ([]*plan.Plan, error) {
	if err := w.Ready(); err != nil {
		return nil, admission.Unavailable(err, time.Second)
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.selected(w.namespaces, namespace, pod)
}

// Named implements [match.Source].
func (w *Watcher) Named(_ context.Context, namespace string, decisions []string) ([]*plan.Plan, error) {
	if err := w.Ready(); err != nil {
		return nil, admission.Unavailable(err, time.Second)
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.named(w.namespaces, namespace, decisions)
}

// Get returns the named object, a ClusterPodDefault if there is no namespace, or nil.
func (w *Watcher) Get(name types.NamespacedName) *plan.Plan {
	if name.Namespace == "" {
		return w.ClusterPodDefaults.Get(name)
	}
	return w.PodDefaults.Get(name)
}

// Rollouts returns the objects of which a rollout is in progress.
func (w *Watcher) Rollouts() (rolling []*plan.Plan) {
	for _, objects := range []*store.Store[*plan.Plan]{w.ClusterPodDefaults, w.PodDefaults} {
		for _, c := range objects.List() {
			if c.Rollout != nil {
				rolling = append(rolling, c)
			}
		}
	}
	return rolling
}

// LastContact returns when the API server last sent something; see
// [store.Factory.LastContact].
func (w *Watcher) LastContact() time.Time { return w.cluster.LastContact() }

// Trouble returns which reads the API server no longer permits, or nil. Pods get what
// was known before.
func (w *Watcher) Trouble() error { return w.cluster.Denied() }

func (w *Watcher) changed(changes []store.Change[*plan.Plan]) {
	for _, c := range changes {
		if c.Now != nil && c.Now.Problem() != nil {
			w.logger.Warn("object can never work and is left out", "object", c.Now.String(), "problem", c.Now.Problem())
		}
		w.gone.changed(c.Before, c.Now)
		if c.Now != nil && c.Now.Rolls() != nil && w.Revisions.Stable(c.Now.Owner()) != c.Now.Record {
			// Its stable revision has changed while it was compiled. This is a handler of its store.
			go w.restage(c.Now.Identity().NamespacedName)
		}
	}
	w.apply(changes)
}

// restage gives an object the state that its revisions now have.
func (w *Watcher) restage(name types.NamespacedName) {
	objects := w.PodDefaults
	if name.Namespace == "" {
		objects = w.ClusterPodDefaults
	}
	objects.Update(name, func(c *plan.Plan) *plan.Plan { return c.Restaged(w.Revisions) })
}

func (w *Watcher) secretsChanged(changes []store.Change[*secret]) {
	for _, c := range changes {
		if c.Now == nil {
			w.secrets.delete(c.Before.identity.Namespace, c.Before.identity.Name)
		} else {
			w.secrets.set(c.Now.identity.Namespace, c.Now.identity.Name, c.Now.labels)
		}
	}
}

// Unconnected says that an object that selects Secrets, or the stable revision of a rollout
// in progress, is left out, and why. It returns nil if they are not. Of a ClusterPodDefault
// it knows only what is the same in all namespaces.
func (w *Watcher) Unconnected(c *plan.Plan) error {
	for _, one := range c.Connecting() { // of most objects none, also without a watcher
		switch problem := w.secrets.problem(one); {
		case problem != nil && one == c:
			return fmt.Errorf("it is left out: %w", problem)
		case problem != nil:
			return fmt.Errorf("its stable revision %s is left out: %w", one.Revision(), problem)
		}
	}
	return nil
}

// Connections returns why objects that select Secrets are left out, or nil.
func (w *Watcher) Connections() error {
	problem, _ := w.secrets.unknown()
	return problem
}

// HandleConnections calls changed with objects for which [Watcher.Unconnected] may have
// changed, until remove is called.
func (w *Watcher) HandleConnections(changed func(*plan.Plan)) (remove func()) {
	if w.secretWatch == nil {
		return func() {}
	}
	tell := func(objects []*plan.Plan) {
		for _, c := range objects {
			if len(c.Connecting()) > 0 {
				changed(c)
			}
		}
	}
	return w.secretWatch.Handle(store.Handler[*secret]{
		Changed: func(changes []store.Change[*secret]) {
			namespaces := map[string]bool{}
			for _, c := range changes {
				if c.Now != nil {
					namespaces[c.Now.identity.Namespace] = true
				} else {
					namespaces[c.Before.identity.Namespace] = true
				}
			}
			for namespace := range namespaces {
				tell(w.All(namespace))
			}
		},
		Synced: func() { tell(slices.Concat(w.ClusterPodDefaults.List(), w.PodDefaults.List())) },
	})
}

func (w *Watcher) namespacesChanged(changes []store.Change[*store.Namespace]) {
	for _, c := range changes {
		if c.Now == nil {
			w.deleteNamespace(c.Before.Name)
		} else {
			w.setNamespace(c.Now.Name, c.Now.Labels)
		}
	}
}
