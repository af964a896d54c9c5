// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
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

	mu          sync.Mutex
	loading     map[string]bool // kinds that were not read yet
	objects     map[key]*node
	claimed     map[place][]claimant // who says something at a place, in the order of their keys
	namespaces  map[string]labels.Set
	conflicting int              // objects that disagree with others
	changed     map[key]struct{} // not compared yet
	wake        chan struct{}
	plans       map[key]*plan
	told        *rate.Limiter // of events
}

// A node is an object, and what is known of those with which it disagrees.
type node struct {
	*object
	others []*node // the first ones, in the order of their keys; at most mostKept
	more   bool    // there are more, or may be
	text   string  // what the condition says of them
	waits  bool    // it is to be compared
}

// A place is one of the pods of a namespace about which specs speak. ClusterPodDefaults
// claim it in the namespace without a name.
type place struct{ namespace, claim string }

// A claimant says something at a place.
type claimant struct {
	says uint64
	node *node
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
		objects: map[key]*node{}, claimed: map[place][]claimant{}, namespaces: map[string]labels.Set{},
		changed: map[key]struct{}{}, wake: make(chan struct{}, 1), plans: map[key]*plan{},
		told: rate.NewLimiter(eventsPerSecond, eventsBurst),
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
	n := e.objects[o.key]
	if n != nil && n.uid == o.uid && n.sameSpec(o) {
		n.object = o
		if !n.waits && outdated(&o.status, o.generation, e.desired(n)) {
			e.plan(o.key)
		}
		return
	}
	if n == nil {
		n = &node{}
		e.objects[o.key] = n
	} else {
		e.unclaim(n)
	}
	n.object = o
	e.claim(n)
	e.compareLater(n)
}

// claim files an object under what it says, and has those compared again that may
// disagree with it now.
func (e *epoch) claim(n *node) {
	for namespace := range e.meeting(n) {
		e.lookAgain(n, namespace)
	}
	for _, c := range n.claims {
		at := place{n.namespace, c.place}
		i, _ := slices.BinarySearchFunc(e.claimed[at], n, compareClaimants)
		e.claimed[at] = slices.Insert(e.claimed[at], i, claimant{c.says, n})
	}
}

// unclaim is the reverse of claim.
func (e *epoch) unclaim(n *node) {
	for _, c := range n.claims {
		at := place{n.namespace, c.place}
		if i, there := slices.BinarySearchFunc(e.claimed[at], n, compareClaimants); there {
			e.claimed[at] = slices.Delete(e.claimed[at], i, i+1)
		}
		if len(e.claimed[at]) == 0 {
			delete(e.claimed, at)
		}
	}
	for namespace := range e.meeting(n) {
		for _, c := range n.claims {
			for _, other := range e.claimed[place{namespace, c.place}] {
				if other.node.mayName(n) && slices.Contains(other.node.others, n) {
					e.compareLater(other.node)
				}
			}
		}
	}
}

// lookAgain has the objects of a namespace compared again that know of this one, or may
// have to.
func (e *epoch) lookAgain(n *node, namespace string) {
	for _, c := range n.claims {
		for _, other := range e.claimed[place{namespace, c.place}] {
			if other.says != c.says && other.node.mayName(n) && (!n.apart(other.node.object) || slices.Contains(other.node.others, n)) {
				e.compareLater(other.node)
			}
		}
	}
}

func compareClaimants(c claimant, n *node) int { return compareKeys(c.node.key, n.key) }

// mayName tells whether another object is among those that are kept, or could be, and this
// one is not going to be compared anyway.
func (n *node) mayName(other *node) bool {
	return !n.waits && (len(n.others) < mostKept || compareKeys(other.key, n.others[mostKept-1].key) <= 0)
}

// meeting yields the namespaces whose claims concern an object.
func (e *epoch) meeting(n *node) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield("") {
			return
		}
		if n.namespace != "" {
			yield(n.namespace)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(e.namespaces)) {
			if selects(n.namespaces, e.namespaces[name]) && !yield(name) {
				return
			}
		}
	}
}

// remove forgets an object.
func (e *epoch) remove(k key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(k)
}

func (e *epoch) drop(k key) {
	n := e.objects[k]
	if n == nil {
		return
	}
	e.unclaim(n)
	e.disagrees(n, nil, false, "")
	delete(e.objects, k)
	delete(e.plans, k)
	delete(e.changed, k)
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
	for k, n := range e.objects {
		if k.namespace == "" && selects(n.namespaces, before) != selects(n.namespaces, now) {
			e.lookAgain(n, name)
			e.lookAgain(n, "")
			e.compareLater(n)
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

func (e *epoch) compareLater(n *node) {
	if n.waits {
		return
	}
	n.waits = true
	e.changed[n.key] = struct{}{}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// compareAll compares what has changed with the others, one object after the other. For
// most of the time it lets others work: statuses can wait, reviews cannot.
func (e *epoch) compareAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for again := true; again && ctx.Err() == nil; {
			began := time.Now()
			for again = true; again && time.Since(began) < e.pace.compare; {
				again = e.compareNext()
			}
			if again {
				pause(ctx, 3*time.Since(began))
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (e *epoch) compareNext() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := range e.changed {
		delete(e.changed, k)
		n := e.objects[k]
		n.waits = false
		e.compare(n)
		e.metrics.conflicting.Set(float64(e.conflicting))
		return true
	}
	return false
}

const (
	// mostKept is how many of those with which an object disagrees are known: a message
	// names few of them. It is as many as are looked for, too.
	mostKept = 50
	// mostCompared is with how many objects one is compared in full, at most.
	mostCompared = 500
)

// compare finds out with which others an object disagrees, and plans to write its status.
// What others know of it is for them to find out; see [epoch.claim].
func (e *epoch) compare(n *node) {
	found, more := e.disagreements(n)
	others := slices.SortedFunc(maps.Keys(found), func(a, b *node) int { return compareKeys(a.key, b.key) })
	if len(others) > mostKept {
		others, more = others[:mostKept:mostKept], true
	}
	e.disagrees(n, others, more, conflictText(n, others, found, more))
	e.plan(n.key)
}

// disagrees notes the result of a comparison.
func (e *epoch) disagrees(n *node, others []*node, more bool, text string) {
	if len(n.others) > 0 {
		e.conflicting--
	}
	if len(others) > 0 {
		e.conflicting++
	}
	n.others, n.more, n.text = others, more, text
}

// disagreements are the first of the others with which an object disagrees, with the
// places, and whether there are, or may be, more. Those first at any place are the first
// of all.
func (e *epoch) disagreements(n *node) (found map[*node][]string, more bool) {
	found = map[*node][]string{}
	seen := map[*node]bool{} // whether they disagree
	for namespace := range e.meeting(n) {
		for _, c := range n.claims {
			here := 0
			for _, other := range e.claimed[place{namespace, c.place}] {
				if c.says == other.says || n.apart(other.node.object) { // it says the same as itself
					continue
				}
				disagree, known := seen[other.node]
				if !known {
					if len(seen) == mostCompared {
						return found, true
					}
					if e.meet(n.object, other.node.object) {
						places := e.rules.overlap(n.object, other.node.object)
						if disagree = len(places) > 0; disagree {
							found[other.node] = places
						}
					}
					seen[other.node] = disagree
				}
				if !disagree {
					continue
				}
				if here++; here > mostKept {
					more = true
					break
				}
			}
		}
	}
	return found, more
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
	n, p := e.objects[k], e.plans[k]
	if n == nil || p == nil {
		return nil, nil
	}
	o := n.object
	if wait := e.due(p, o.generation); wait > 0 {
		e.queue.AddAfter(k, wait)
		return nil, nil
	}
	p.since = time.Time{}
	conditions := e.desired(n)
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
		if now := e.objects[k]; now != nil && (now.object == o || now.resourceVersion == o.resourceVersion) {
			written := *o
			written.status, written.resourceVersion = *next, version
			now.object = &written
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

// Events are for people: who has more than these at once reads statuses.
const eventsPerSecond, eventsBurst = 5, 100

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
		case c.Status != event.bad && before != event.bad || !e.told.Allow():
		case c.Status == event.bad:
			e.recorder.Eventf(o.reference(), nil, corev1.EventTypeWarning, event.reason, "Judge", "%s", c.Message)
		case before == event.bad:
			e.recorder.Eventf(o.reference(), nil, corev1.EventTypeNormal, event.better, "Judge", "%s is %s now", event.condition, c.Status)
		}
	}
}
