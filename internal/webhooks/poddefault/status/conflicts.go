// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

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

// claim files an object under what it says, and has those compared again that may
// disagree with it now.
func (r *reconciler) claim(n *node) {
	for namespace := range r.meeting(n) {
		r.lookAgain(n, namespace)
	}
	for _, c := range n.claims {
		at := place{n.namespace, c.place}
		i, _ := slices.BinarySearchFunc(r.claimed[at], n, compareClaimants)
		r.claimed[at] = slices.Insert(r.claimed[at], i, claimant{c.says, n})
	}
}

// unclaim is the reverse of claim.
func (r *reconciler) unclaim(n *node) {
	for _, c := range n.claims {
		at := place{n.namespace, c.place}
		if i, there := slices.BinarySearchFunc(r.claimed[at], n, compareClaimants); there {
			r.claimed[at] = slices.Delete(r.claimed[at], i, i+1)
		}
		if len(r.claimed[at]) == 0 {
			delete(r.claimed, at)
		}
	}
	for namespace := range r.meeting(n) {
		for _, c := range n.claims {
			for _, other := range r.claimed[place{namespace, c.place}] {
				if other.node.mayName(n) && slices.Contains(other.node.others, n) {
					r.compareLater(other.node)
				}
			}
		}
	}
}

// lookAgain has the objects of a namespace compared again that know of this one, or may
// have to.
func (r *reconciler) lookAgain(n *node, namespace string) {
	for _, c := range n.claims {
		for _, other := range r.claimed[place{namespace, c.place}] {
			if other.says != c.says && other.node.mayName(n) && (!n.apart(other.node.object) || slices.Contains(other.node.others, n)) {
				r.compareLater(other.node)
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
func (r *reconciler) meeting(n *node) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield("") {
			return
		}
		if n.namespace != "" {
			yield(n.namespace)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(r.namespaces)) {
			if n.selects(r.namespaces[name]) && !yield(name) {
				return
			}
		}
	}
}

// setNamespace notes the labels of a namespace, nil if it is gone. Which
// ClusterPodDefaults are for it may change.
func (r *reconciler) setNamespace(name string, now labels.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.namespaces[name]
	if now == nil {
		delete(r.namespaces, name)
	} else if r.namespaces[name] = now; before != nil && labels.Equals(before, now) {
		return
	}
	for k, n := range r.objects {
		if k.namespace == "" && n.selects(before) != n.selects(now) {
			r.lookAgain(n, name)
			r.lookAgain(n, "")
			r.compareLater(n)
		}
	}
}

func (r *reconciler) compareLater(n *node) {
	if !n.waits {
		n.waits = true
		r.changed[n.key] = struct{}{}
	}
}

// compareAll takes in what has changed and compares it with the rest, one object at a time.
// It works a quarter of the time: statuses can wait, reviews cannot.
func (r *reconciler) compareAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.pending.wake:
		}
		for again := true; again && ctx.Err() == nil; {
			began := time.Now()
			for again = true; again && time.Since(began) < r.pace.compare; {
				again = r.observe() || r.compareNext()
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

func (r *reconciler) compareNext() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.changed {
		delete(r.changed, k)
		n := r.objects[k]
		n.waits = false
		r.compare(n)
		r.metrics.conflicting.Set(float64(r.conflicting))
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
// What the others know of it, their own comparison finds out; see [reconciler.claim].
func (r *reconciler) compare(n *node) {
	found, more := r.disagreements(n)
	others := slices.SortedFunc(maps.Keys(found), func(a, b *node) int { return compareKeys(a.key, b.key) })
	if len(others) > mostKept {
		others, more = others[:mostKept:mostKept], true
	}
	r.disagrees(n, others, more, conflictText(n, others, found, more))
	r.plan(n.key)
}

// disagrees notes the result of a comparison.
func (r *reconciler) disagrees(n *node, others []*node, more bool, text string) {
	if len(n.others) > 0 {
		r.conflicting--
	}
	if len(others) > 0 {
		r.conflicting++
	}
	n.others, n.more, n.text = others, more, text
}

// disagreements are the first of the others with which an object disagrees, with the
// places, and whether there are, or may be, more. Those first at any place are the first
// of all.
func (r *reconciler) disagreements(n *node) (found map[*node][]string, more bool) {
	found = map[*node][]string{}
	seen := map[*node]bool{} // whether they disagree
	for namespace := range r.meeting(n) {
		for _, c := range n.claims {
			here := 0
			for _, other := range r.claimed[place{namespace, c.place}] {
				if c.says == other.says || n.apart(other.node.object) { // it says the same as itself
					continue
				}
				disagree, known := seen[other.node]
				if !known {
					if len(seen) == mostCompared {
						return found, true
					}
					if r.meet(n.object, other.node.object) {
						places := r.overlap(n.Compiled, other.node.Compiled)
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
func (r *reconciler) meet(a, b *object) bool {
	switch {
	case a.namespace != "" && b.namespace != "":
		return a.namespace == b.namespace
	case a.namespace != "":
		return b.selects(r.namespaces[a.namespace])
	case b.namespace != "":
		return a.selects(r.namespaces[b.namespace])
	}
	for _, namespace := range r.namespaces {
		if a.selects(namespace) && b.selects(namespace) {
			return true
		}
	}
	return false
}
