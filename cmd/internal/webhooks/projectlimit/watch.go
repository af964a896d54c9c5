// SPDX-License-Identifier: Apache-2.0

package projectlimit

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Watcher is a [Source] that watches the namespaces of a cluster and keeps a [Project]
// for each. While the API server is down, it uses what it has. See [Watch].
type Watcher struct {
	index      *Index
	namespaces *store.Store[*store.Namespace]
}

// Watch prepares a watcher. [Watcher.Run] starts it and calls loaded when Ready has
// become nil. The factory's credentials must be allowed to list and watch namespaces.
func Watch(cluster *store.Factory, loaded func()) (*Watcher, error) {
	namespaces, err := cluster.Namespaces(OpenShiftAnnotation, Annotation)
	if err != nil {
		return nil, err
	}
	w := &Watcher{index: NewIndex(), namespaces: namespaces}
	namespaces.Handle(store.Handler[*store.Namespace]{Changed: w.changed, Synced: loaded})
	return w, nil
}

// Run watches until the context ends.
func (w *Watcher) Run(ctx context.Context) error {
	w.namespaces.Run(ctx)
	return nil
}

// Ready returns nil once all namespaces have been read.
func (w *Watcher) Ready() error {
	if !w.namespaces.HasSynced() {
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

// Len returns the number of projects with a requester.
func (w *Watcher) Len() int { return w.index.Len() }

func (w *Watcher) changed(changes []store.Change[*store.Namespace]) {
	for _, c := range changes {
		if n := c.Now; n == nil {
			w.index.Delete(c.Before.Name, c.Before.UID)
		} else {
			w.index.Set(Project{Name: n.Name, UID: n.UID, Requester: Requester(n.Annotations), Terminating: n.Terminating})
		}
	}
}

// ProjectOf returns the relevant part of a namespace.
func ProjectOf(namespace metav1.Object) Project {
	return Project{
		Name:        namespace.GetName(),
		UID:         namespace.GetUID(),
		Requester:   Requester(namespace.GetAnnotations()),
		Terminating: namespace.GetDeletionTimestamp() != nil,
	}
}
