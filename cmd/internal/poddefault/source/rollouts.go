// SPDX-License-Identifier: Apache-2.0

package source

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Rollouts returns the objects of which a rollout is in progress.
func (w *Watcher) Rollouts() []*plan.Plan {
	w.rolling.mu.Lock()
	defer w.rolling.mu.Unlock()
	out := make([]*plan.Plan, 0, len(w.rolling.objects))
	for _, c := range w.rolling.objects {
		out = append(out, c)
	}
	return out
}

// rolling holds the objects of which a rollout is in progress.
type rolling struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*plan.Plan
}

func (r *rolling) changed(before, now *plan.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case now == nil:
		delete(r.objects, before.Identity().NamespacedName)
	case now.Rollout == nil:
		delete(r.objects, now.Identity().NamespacedName)
	default:
		r.objects[now.Identity().NamespacedName] = now
	}
}
