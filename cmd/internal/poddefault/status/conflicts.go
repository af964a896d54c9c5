// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// A node is an object with its known conflicts.
type node struct {
	*object
	others []*node // the first ones by key; at most maxKept
	more   bool    // there are, or may be, more
	text   string  // of the condition
	waits  bool    // to be compared
	turn   turn
}

// A place is a place of pods in a namespace that specs set. ClusterPodDefaults claim it
// in the empty namespace.
type place struct{ namespace, claim string }

// A claimant sets a value at a place.
type claimant struct {
	says uint64
	node *node
}

// claim files an object under its claims and schedules objects that may now conflict
// with it.
func (r *reconciler) claim(n *node) {
	for namespace := range r.meeting(n) {
		r.lookAgain(n, namespace)
	}
	for _, c := range n.claims {
		at := place{n.Namespace(), c.place}
		i, _ := slices.BinarySearchFunc(r.claimed[at], n, compareClaimants)
		r.claimed[at] = slices.Insert(r.claimed[at], i, claimant{c.says, n})
	}
}

// unclaim reverses claim.
func (r *reconciler) unclaim(n *node) {
	for _, c := range n.claims {
		at := place{n.Namespace(), c.place}
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

// lookAgain schedules the objects of a namespace that list this one as a conflict, or
// may have to.
func (r *reconciler) lookAgain(n *node, namespace string) {
	for _, c := range n.claims {
		for _, other := range r.claimed[place{namespace, c.place}] {
			if other.says != c.says && other.node.mayName(n) && (!n.apart(other.node.object) || slices.Contains(other.node.others, n)) {
				r.compareLater(other.node)
			}
		}
	}
}

func compareNodes(a, b *node) int {
	return cmp.Or(strings.Compare(a.Namespace(), b.Namespace()), strings.Compare(a.Name(), b.Name()))
}

func compareClaimants(c claimant, n *node) int { return compareNodes(c.node, n) }

// mayName reports whether the other object is, or could be, among the kept conflicts,
// and this one is not scheduled anyway.
func (n *node) mayName(other *node) bool {
	return !n.waits && (len(n.others) < maxKept || compareNodes(other, n.others[maxKept-1]) <= 0)
}

// meeting yields the namespaces whose claims concern an object.
func (r *reconciler) meeting(n *node) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield("") {
			return
		}
		if n.Namespace() != "" {
			yield(n.Namespace())
			return
		}
		for _, name := range slices.Sorted(maps.Keys(r.namespaces)) {
			if n.selects(r.namespaces[name]) && !yield(name) {
				return
			}
		}
	}
}

// setNamespace records the labels of a namespace, nil if it is gone. They decide which
// ClusterPodDefaults apply.
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
		if k.Namespace == "" && n.selects(before) != n.selects(now) {
			r.lookAgain(n, name)
			r.lookAgain(n, "")
			r.compareLater(n)
		}
	}
}

func (r *reconciler) compareLater(n *node) {
	if !n.waits {
		n.waits = true
		r.changed[n.key()] = struct{}{}
	}
}

// compareSome processes changes and compares the changed objects, one at a time. It uses
// a quarter of the time: statuses can wait, reviews cannot.
func (r *reconciler) compareSome(ctx context.Context, _ struct{}) (again time.Duration, err error) {
	for began := time.Now(); ctx.Err() == nil; {
		if !r.observe() && !r.compareNext() {
			return 0, nil
		}
		if took := time.Since(began); took >= r.pace.compare {
			return 3 * took, nil
		}
	}
	return 0, nil
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
	r.changed = map[key]struct{}{} // it has been drained, and keeps its memory
	return false
}

const (
	// maxKept limits the known conflicts of an object: a message names few. The search
	// stops there too.
	maxKept = 50
	// maxCompared limits the full comparisons for one object.
	maxCompared = 500
)

// compare finds an object's conflicts and schedules its status. The others' own
// comparisons update their conflicts; see [reconciler.claim].
func (r *reconciler) compare(n *node) {
	found, more := r.disagreements(n)
	others := slices.SortedFunc(maps.Keys(found), compareNodes)
	if len(others) > maxKept {
		others, more = others[:maxKept:maxKept], true
	}
	r.disagrees(n, others, more, conflictText(n, others, found, more))
	r.plan(n.key())
}

// disagrees records the result of a comparison.
func (r *reconciler) disagrees(n *node, others []*node, more bool, text string) {
	if len(n.others) > 0 {
		r.conflicting--
	}
	if len(others) > 0 {
		r.conflicting++
	}
	n.others, n.more, n.text = others, more, text
}

// disagreements returns the first conflicting objects with their places, and whether
// there are, or may be, more. It visits each place in key order, so these are the first
// overall.
func (r *reconciler) disagreements(n *node) (found map[*node][]string, more bool) {
	found = map[*node][]string{}
	seen := map[*node]bool{} // whether they conflict
	for namespace := range r.meeting(n) {
		for _, c := range n.claims {
			here := 0
			for _, other := range r.claimed[place{namespace, c.place}] {
				if c.says == other.says || n.apart(other.node.object) { // both want the same, or no pod gets both
					continue
				}
				disagree, known := seen[other.node]
				if !known {
					if len(seen) == maxCompared {
						return found, true
					}
					if r.meet(n.object, other.node.object) {
						places := r.overlap(n.Plan, other.node.Plan)
						if disagree = len(places) > 0; disagree {
							found[other.node] = places
						}
					}
					seen[other.node] = disagree
				}
				if !disagree {
					continue
				}
				if here++; here > maxKept {
					more = true
					break
				}
			}
		}
	}
	return found, more
}

// meet reports whether both objects apply in some namespace.
func (r *reconciler) meet(a, b *object) bool {
	switch {
	case a.Namespace() != "" && b.Namespace() != "":
		return a.Namespace() == b.Namespace()
	case a.Namespace() != "":
		return b.selects(r.namespaces[a.Namespace()])
	case b.Namespace() != "":
		return a.selects(r.namespaces[b.Namespace()])
	}
	for _, namespace := range r.namespaces {
		if a.selects(namespace) && b.selects(namespace) {
			return true
		}
	}
	return false
}
