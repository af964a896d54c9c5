// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// mostTallied limits the workloads that a tally remembers.
const mostTallied = 10_000

// A tally knows which workloads this replica has refused because of a revision that is
// rolled out. Refused pods exist nowhere else.
type tally struct {
	mu      sync.Mutex
	refused map[string]bool // by workload, from its last pod
}

func (t *tally) add(workload string, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.refused[workload]; known || len(t.refused) < mostTallied {
		t.refused[workload] = refused
	}
}

// Refusals calls visit for each workload that this replica has given the current revision
// to since its rollout began, or refused because of it.
func (c *Compiled) Refusals(visit func(namespace string, refused bool)) {
	if c.rollout == nil {
		return
	}
	t := c.rollout.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	for workload, refused := range t.refused {
		namespace, _, _ := strings.Cut(workload, "/")
		visit(namespace, refused)
	}
}

// tally counts a pod for the revisions that are rolled out and that it gets.
func (m *merge) tally(chosen match) {
	if m.pod.dryRun {
		return
	}
	for _, c := range chosen.objects {
		if c.rollout == nil || c.rollout.current.revision != c.revision {
			continue
		}
		refused := slices.ContainsFunc(m.conflicts, func(conflict conflict) bool {
			return conflict.object.title == c.title || conflict.opponent != nil && conflict.opponent.title == c.title
		})
		if refused || len(m.conflicts) == 0 {
			c.rollout.tally.add(chosen.namespace+"/"+workloadOf(&m.pod.metadata, &m.pod.bounds).unit, refused)
		}
	}
}

// Rollouts returns the objects of which a rollout is in progress.
func (w *Watcher) Rollouts() []*Compiled {
	w.rolling.mu.Lock()
	defer w.rolling.mu.Unlock()
	out := make([]*Compiled, 0, len(w.rolling.objects))
	for _, c := range w.rolling.objects {
		out = append(out, c)
	}
	return out
}

// rolling holds the objects of which a rollout is in progress.
type rolling struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*Compiled
}

func (r *rolling) changed(before, now *Compiled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case now == nil:
		delete(r.objects, before.Identity().NamespacedName)
	case now.rollout == nil:
		delete(r.objects, now.Identity().NamespacedName)
	default:
		r.objects[now.Identity().NamespacedName] = now
	}
}
