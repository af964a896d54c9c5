// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// reconciler is the state of a replica while it leads.
type reconciler struct {
	*Controller
	recorder events.EventRecorder
	writes   *control.Controller[key]
	compares *control.Controller[struct{}] // of whatever is pending or changed
	now      func() time.Time
	// pending objects and namespaces have changed.
	pending           pending[key]
	pendingNamespaces pending[string]

	mu          sync.Mutex
	objects     map[key]*node
	claimed     map[place][]claimant // claimants by place, ordered by key
	namespaces  map[string]labels.Set
	conflicting int              // number of objects with conflicts
	changed     map[key]struct{} // to compare
	told        *rate.Limiter    // for events
	counted     *rate.Limiter    // for writes that only change counts
}

// A turn records when a status was written, and whether it is due.
type turn struct {
	since      time.Time // when it became outdated; zero if it is up to date
	generation int64     // of the recorded writes
	writes     int
	last       time.Time
	counts     bool // the write in progress only changes counts
}

func newReconciler(c *Controller) *reconciler {
	r := &reconciler{
		Controller: c, now: time.Now,
		objects: map[key]*node{}, claimed: map[place][]claimant{}, namespaces: map[string]labels.Set{},
		changed: map[key]struct{}{}, told: rate.NewLimiter(eventsPerSecond, eventsBurst),
		counted: rate.NewLimiter(rate.Limit(c.pace.countsPerSecond), 1),
	}
	r.writes = control.NewController(c.pace.quiet, 128*c.pace.quiet, r.reconcile)
	r.compares = control.NewController(c.pace.quiet, c.pace.quiet, r.compareSome)
	return r
}

// follow subscribes the reconciler to changes until the returned functions are called.
func (r *reconciler) follow(w *source.Watcher) (removes []func()) {
	object := func(k key) {
		r.pending.add(k)
		r.compares.Enqueue(struct{}{}, 0)
	}
	removes = []func(){
		w.Namespaces.HandleNames(func(name types.NamespacedName) {
			r.pendingNamespaces.add(name.Name)
			r.compares.Enqueue(struct{}{}, 0)
		}),
		w.HandleConnections(func(c *plan.Plan) { object(c.Identity().NamespacedName) }),
		w.ClusterPodDefaults.HandleNames(object), w.PodDefaults.HandleNames(object),
	}
	if r.room != nil {
		removes = append(removes, r.room.HandleOmitted(object))
	}
	if r.pods != nil {
		removes = append(removes, r.pods.Handle(r.recount))
	}
	return removes
}

// recount schedules the status of an object whose pods were counted.
func (r *reconciler) recount(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan(k)
}

// observe processes the next change. It returns false if there is none.
func (r *reconciler) observe() bool {
	if name, ok := r.pendingNamespaces.next(); ok {
		var now labels.Set
		if namespace := r.watcher.Namespaces.Get(types.NamespacedName{Name: name}); namespace != nil {
			now = namespace.Labels
		}
		r.setNamespace(name, now)
		return true
	}
	k, ok := r.pending.next()
	if !ok {
		return false
	}
	if c := r.watcher.Get(k); c != nil {
		r.set(c)
	} else {
		r.remove(k)
	}
	return true
}

// set adds or replaces an object.
func (r *reconciler) set(c *plan.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := c.Identity().NamespacedName
	n := r.objects[k]
	if n != nil && n.sameSpec(c) {
		n.object = n.with(c)
		if !n.waits && (n.outdated(r.desired(n)) || !r.hasCounts(n)) {
			r.plan(k)
		}
		return
	}
	if n == nil {
		n = &node{}
		r.objects[k] = n
	} else {
		r.unclaim(n)
	}
	n.object = newObject(c)
	r.claim(n)
	r.compareLater(n)
}

// remove forgets an object.
func (r *reconciler) remove(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.objects[k]
	if n == nil {
		return
	}
	r.unclaim(n)
	r.disagrees(n, nil, false, "")
	delete(r.objects, k)
	delete(r.changed, k)
}

// plan schedules a check of a status.
func (r *reconciler) plan(k key) {
	n := r.objects[k]
	if n == nil {
		return
	}
	p := &n.turn
	if p.since.IsZero() {
		p.since = r.now()
		r.writes.Enqueue(k, r.pace.quiet)
	}
}

// counts returns the desired counts of an object's pods: none if nobody counts, and the
// observed ones while they are not known, or if there are neither counts nor pods.
func (r *reconciler) counts(n *node) *kubeflowv1alpha1.PodCounts {
	if r.pods == nil {
		return nil
	}
	counts := r.pods.Pods(n.key())
	if counts == nil || n.status.Pods == nil && *counts == (kubeflowv1alpha1.PodCounts{}) {
		return n.status.Pods
	}
	return counts
}

func (r *reconciler) hasCounts(n *node) bool {
	observed, desired := n.status.Pods, r.counts(n)
	return observed == desired || observed != nil && desired != nil && *observed == *desired
}

// dueCounts is due for a status that only differs by counts.
func (r *reconciler) dueCounts(p *turn) time.Duration {
	now := r.now()
	if wait := r.pace.counts - now.Sub(p.last); wait > 0 && !p.last.IsZero() {
		return wait
	}
	reservation := r.counted.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// due returns how long a status must wait.
func (r *reconciler) due(p *turn, generation int64) time.Duration {
	now := r.now()
	if (len(r.changed) > 0 || r.pending.any() || r.pendingNamespaces.any()) && now.Sub(p.since) < r.pace.patience {
		return r.pace.quiet
	}
	if p.generation != generation || now.Sub(p.last) > r.pace.longest {
		p.generation, p.writes = generation, 0
	}
	if p.writes == 0 {
		return 0
	}
	interval := r.pace.again
	for range p.writes - 1 {
		interval = min(4*interval, r.pace.longest)
	}
	return interval - now.Sub(p.last)
}

// reconcile writes the status of an object if it differs from the desired state.
func (r *reconciler) reconcile(ctx context.Context, k key) (again time.Duration, err error) {
	o, next, wait := r.next(k)
	if next == nil {
		return wait, nil
	}
	version, err := r.patchStatus(ctx, o.Plan, o.resourceVersion, next)
	r.metrics.writes.WithLabelValues(control.Result(err)).Inc()
	r.written(o, next, version, err)
	if err == nil {
		r.tell(o, next)
	}
	return 0, r.frame.Failed(ctx, err, "status", "object", o.String())
}

// next returns the status to write now. If it is nil, wait is the delay until the next
// check; zero means until the object changes.
func (r *reconciler) next(k key) (o *object, next *kubeflowv1alpha1.PodDefaultStatus, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.objects[k]
	if n == nil || n.turn.since.IsZero() { // deleted, and perhaps there again, but not compared yet
		return nil, nil, 0
	}
	p := &n.turn
	conditions := r.desired(n)
	if p.counts = !n.outdated(conditions); p.counts && r.hasCounts(n) {
		p.since = time.Time{}
		return nil, nil, 0
	}
	if p.counts {
		wait = r.dueCounts(p)
	} else {
		wait = r.due(p, n.Generation())
	}
	if wait > 0 {
		return nil, nil, wait
	}
	p.since = time.Time{}
	next = n.status.DeepCopy()
	next.Pods = r.counts(n)
	if n.Rolls() == nil {
		next.CurrentRevision = n.Revision()
	}
	next.ObservedGeneration = n.Generation()
	setConditions(next, conditions)
	return n.object, next, 0
}

// written records the result of a write. Until the watch delivers it, the written
// status counts as observed.
func (r *reconciler) written(o *object, next *kubeflowv1alpha1.PodDefaultStatus, version string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.objects[o.key()]
	if n == nil { // deleted
		return
	}
	p := &n.turn
	switch {
	case err == nil:
		if p.last = r.now(); !p.counts { // counts must not delay conditions
			p.writes++
		}
		if n.resourceVersion == o.resourceVersion {
			written := *n.object
			written.status, written.resourceVersion = next, version
			n.object = &written
		}
	case p.since.IsZero() && !apierrors.IsNotFound(err):
		p.since = r.now()
	}
}

// patchStatus writes the status of an object that was read with this resourceVersion. It returns the new one.
func (c *Controller) patchStatus(ctx context.Context, o *plan.Plan, resourceVersion string, status *kubeflowv1alpha1.PodDefaultStatus) (string, error) {
	client, resource, is := c.podDefaults, kubeflowv1alpha1.PodDefaultResource, o.Identity()
	if o.Cluster() {
		client, resource = c.clusterPodDefaults, sallyportv1alpha1.ClusterPodDefaultResource
	}
	is.ResourceVersion = resourceVersion
	return control.PatchStatus(ctx, client, resource, is, status)
}
