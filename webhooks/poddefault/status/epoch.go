// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// epoch is what a replica knows from when it begins to lead until it ends.
type epoch struct {
	*Controller
	recorder events.EventRecorder
	queue    workqueue.TypedDelayingInterface[key]
	now      func() time.Time

	mu         sync.Mutex
	loading    map[string]bool // kinds that were not read yet
	objects    map[key]*object
	claimed    map[string]map[key]claimant // who says something at a place
	namespaces map[string]labels.Set
	conflicts  map[key]map[key][]string // places, by both sides
	crowded    map[key]bool             // those that conflict with more than are kept
	changed    map[key]bool             // not compared yet
	wake       chan struct{}
	plans      map[key]*plan
}

// A claimant says something at a place.
type claimant struct {
	says   uint64
	object *object
}

// A plan is when a status was written, and whether it is to be.
type plan struct {
	since      time.Time // when it became wrong; zero if it is right
	generation int64     // that the writes are about
	writes     int
	last       time.Time
	failures   int
}

func newEpoch(c *Controller) *epoch {
	return &epoch{
		Controller: c, now: time.Now,
		queue:   workqueue.NewTypedDelayingQueue[key](),
		loading: map[string]bool{"poddefaults": true, "clusterpoddefaults": true, "namespaces": true},
		objects: map[key]*object{}, claimed: map[string]map[key]claimant{}, namespaces: map[string]labels.Set{},
		conflicts: map[key]map[key][]string{}, crowded: map[key]bool{}, changed: map[key]bool{}, wake: make(chan struct{}, 1), plans: map[key]*plan{},
	}
}

// loaded notes that a kind was read. Before all were, nothing is written: half of the
// objects have half of the conflicts.
func (e *epoch) loaded(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.loading, what)
}

// set adds an object, or replaces the one of the same name.
func (e *epoch) set(o *object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(o)
}

func (e *epoch) put(o *object) {
	old := e.objects[o.key]
	e.objects[o.key] = o
	if old != nil && old.uid == o.uid && old.sameSpec(o) {
		e.claim(o)
		if !e.changed[o.key] && outdated(&o.status, o.generation, e.desired(o)) {
			e.plan(o.key)
		}
		return
	}
	e.unclaim(old)
	e.claim(o)
	e.compareLater(o.key)
}

func (e *epoch) claim(o *object) {
	for claim, says := range o.claims {
		if e.claimed[claim] == nil {
			e.claimed[claim] = map[key]claimant{}
		}
		e.claimed[claim][o.key] = claimant{says, o}
	}
}

// remove forgets an object.
func (e *epoch) remove(k key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(k)
}

func (e *epoch) drop(k key) {
	old := e.objects[k]
	if old == nil {
		return
	}
	delete(e.objects, k)
	delete(e.plans, k)
	e.unclaim(old)
	e.compareLater(k)
}

// replace makes the objects of a kind these and no others.
func (e *epoch) replace(all []*object, cluster bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	there := map[key]bool{}
	for _, o := range all {
		there[o.key] = true
		e.put(o)
	}
	for k := range e.objects {
		if (k.namespace == "") == cluster && !there[k] {
			e.drop(k)
		}
	}
}

func (e *epoch) unclaim(o *object) {
	if o == nil {
		return
	}
	for claim := range o.claims {
		delete(e.claimed[claim], o.key)
		if len(e.claimed[claim]) == 0 {
			delete(e.claimed, claim)
		}
	}
}

// setNamespace notes the labels of a namespace, nil if it is gone. Which
// ClusterPodDefaults are for it may change.
func (e *epoch) setNamespace(name string, now labels.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.namespaces[name]
	if now == nil {
		delete(e.namespaces, name)
	} else if e.namespaces[name] = now; before != nil && labels.Equals(before, now) {
		return
	}
	for k, o := range e.objects {
		if k.namespace == "" && selects(o.namespaces, before) != selects(o.namespaces, now) {
			e.compareLater(k)
		}
	}
}

// selects tells whether a ClusterPodDefault is for a namespace with these labels; nil if
// it is not known.
func selects(selector labels.Selector, namespace labels.Set) bool {
	return namespace != nil && selector.Matches(namespace)
}

func (e *epoch) namespaceNames() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.namespaces))
}

func (e *epoch) compareLater(k key) {
	e.changed[k] = true
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// compareAll compares what has changed with the others, one object after the other.
func (e *epoch) compareAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for ctx.Err() == nil && e.compareNext() {
		}
	}
}

func (e *epoch) compareNext() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := range e.changed {
		delete(e.changed, k)
		e.compare(k)
		e.metrics.count(e)
		return true
	}
	return false
}

// mostKept is how many of those with which an object conflicts are known: a message
// names few of them.
const mostKept = 50

// compare finds out with which others an object disagrees, and plans to write the
// statuses that change.
func (e *epoch) compare(k key) {
	found := e.disagreements(k)
	before := e.conflicts[k]
	if e.crowded[k] { // others know of it, and it does not know of them
		before = map[key][]string{}
		for other, theirs := range e.conflicts {
			if places, there := theirs[k]; there {
				before[other] = places
			}
		}
	}
	for other := range before {
		if _, still := found[other]; still {
			continue
		}
		if delete(e.conflicts[other], k); len(e.conflicts[other]) == 0 {
			delete(e.conflicts, other)
		}
		if e.plan(other); e.crowded[other] {
			e.compareLater(other) // there is place for one more
		}
	}
	for other, places := range found {
		if e.conflicts[other] == nil {
			e.conflicts[other] = map[key][]string{}
		}
		theirs := e.conflicts[other]
		if known, there := theirs[k]; !there && len(theirs) >= mostKept {
			e.crowded[other] = true
		} else if !there || !slices.Equal(known, places) {
			theirs[k] = places
		}
		e.plan(other) // what becomes of pods may have changed
	}
	delete(e.crowded, k)
	if len(found) > mostKept {
		e.crowded[k] = true
		for _, other := range slices.SortedFunc(maps.Keys(found), compareKeys)[mostKept:] {
			delete(found, other)
		}
	}
	if delete(e.conflicts, k); len(found) > 0 {
		e.conflicts[k] = found
	}
	e.plan(k)
}

// disagreements are the places where an object disagrees with others, by those.
func (e *epoch) disagreements(k key) map[key][]string {
	o, found := e.objects[k], map[key][]string{}
	if o == nil {
		return found
	}
	seen := map[key]bool{}
	for claim, says := range o.claims {
		for other, they := range e.claimed[claim] {
			if says == they.says || o.apart(they.object) || seen[other] { // it says the same as itself
				continue
			}
			seen[other] = true
			if !e.meet(o, they.object) {
				continue
			}
			if places := e.rules.overlap(o, they.object); len(places) > 0 {
				found[other] = places
			}
		}
	}
	return found
}

// meet tells whether there is a namespace for whose pods both objects are.
func (e *epoch) meet(a, b *object) bool {
	switch {
	case a.namespace != "" && b.namespace != "":
		return a.namespace == b.namespace
	case a.namespace != "":
		return selects(b.namespaces, e.namespaces[a.namespace])
	case b.namespace != "":
		return selects(a.namespaces, e.namespaces[b.namespace])
	}
	for _, namespace := range e.namespaces {
		if selects(a.namespaces, namespace) && selects(b.namespaces, namespace) {
			return true
		}
	}
	return false
}

// plan has a status looked at in a while.
func (e *epoch) plan(k key) {
	if e.objects[k] == nil {
		return
	}
	p := e.plans[k]
	if p == nil {
		p = &plan{}
		e.plans[k] = p
	}
	if p.since.IsZero() {
		p.since = e.now()
		e.queue.AddAfter(k, e.pace.quiet)
	}
}

// due is how long a status has to wait.
func (e *epoch) due(p *plan, generation int64) time.Duration {
	now := e.now()
	if len(e.loading) > 0 || len(e.changed) > 0 && now.Sub(p.since) < e.pace.patience {
		return e.pace.quiet
	}
	if p.generation != generation || now.Sub(p.last) > e.pace.longest {
		p.generation, p.writes = generation, 0
	}
	if p.writes == 0 {
		return 0
	}
	interval := e.pace.again
	for range p.writes - 1 {
		interval = min(4*interval, e.pace.longest)
	}
	return interval - now.Sub(p.last)
}

// write writes statuses until the queue is shut down.
func (e *epoch) write(ctx context.Context) {
	for {
		k, ended := e.queue.Get()
		if ended {
			return
		}
		e.writeOne(ctx, k)
		e.queue.Done(k)
	}
}

func (e *epoch) writeOne(ctx context.Context, k key) {
	o, next := e.next(k)
	if o == nil {
		return
	}
	version, err := e.patchStatus(ctx, o, next)
	e.metrics.writes.WithLabelValues(result(err)).Inc()
	e.written(k, o, next, version, err)
	if err == nil {
		e.tell(o, next)
	} else if ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		e.log.Warn("a status was not written, and will be tried again", "object", k.String(), "error", err)
	}
}

// next is the status that an object is to get now; nil if none.
func (e *epoch) next(k key) (*object, *kubeflowv1alpha1.PodDefaultStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o, p := e.objects[k], e.plans[k]
	if o == nil || p == nil {
		return nil, nil
	}
	if wait := e.due(p, o.generation); wait > 0 {
		e.queue.AddAfter(k, wait)
		return nil, nil
	}
	p.since = time.Time{}
	conditions := e.desired(o)
	if !outdated(&o.status, o.generation, conditions) {
		return nil, nil
	}
	next := o.status.DeepCopy()
	next.ObservedGeneration = o.generation
	for _, condition := range conditions {
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	return o, next
}

// written notes what became of a write.
func (e *epoch) written(k key, o *object, next *kubeflowv1alpha1.PodDefaultStatus, version string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.plans[k]
	if p == nil { // it was deleted
		return
	}
	if err == nil {
		p.failures = 0
		p.writes++
		p.last = e.now()
		if now := e.objects[k]; now == o || now != nil && now.resourceVersion == o.resourceVersion {
			written := *o
			written.status, written.resourceVersion = *next, version
			e.objects[k] = &written
		}
		return
	}
	if apierrors.IsNotFound(err) { // the watch will tell
		return
	}
	p.failures = min(p.failures+1, 8)
	if p.since.IsZero() {
		p.since = e.now()
	}
	e.queue.AddAfter(k, e.pace.quiet<<(p.failures-1))
}

// tell records events about what has changed, for those who look at the object.
func (e *epoch) tell(o *object, next *kubeflowv1alpha1.PodDefaultStatus) {
	was := func(name string) metav1.ConditionStatus {
		if c := meta.FindStatusCondition(o.status.Conditions, name); c != nil {
			return c.Status
		}
		return ""
	}
	for _, event := range []struct {
		condition string
		bad       metav1.ConditionStatus
		reason    string
		better    string
	}{
		{kubeflowv1alpha1.ConditionAccepted, metav1.ConditionFalse, "Invalid", "Valid"},
		{kubeflowv1alpha1.ConditionConflicting, metav1.ConditionTrue, "Conflict", "ConflictResolved"},
	} {
		c := meta.FindStatusCondition(next.Conditions, event.condition)
		before := was(event.condition)
		switch {
		case c == nil || c.Status == before:
		case c.Status == event.bad:
			e.recorder.Eventf(o.reference(), nil, corev1.EventTypeWarning, event.reason, "Judge", "%s", c.Message)
		case before == event.bad:
			e.recorder.Eventf(o.reference(), nil, corev1.EventTypeNormal, event.better, "Judge", "%s is %s now", event.condition, c.Status)
		}
	}
}
