// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// told tells handlers which objects have room in an index again, or no longer.
type told struct {
	mu       sync.Mutex
	handlers map[int]func([]types.NamespacedName)
	next     int
}

// tell calls the handlers with objects of a namespace, named as in an index.
func (t *told) tell(namespace string, decisions []string) {
	if len(decisions) == 0 {
		return
	}
	var names []types.NamespacedName
	for _, decision := range decisions {
		if name, ofCluster := strings.CutPrefix(decision, meta.ClusterDecision); ofCluster {
			names = append(names, types.NamespacedName{Name: name})
		} else {
			names = append(names, types.NamespacedName{Namespace: namespace, Name: decision})
		}
	}
	t.mu.Lock()
	handlers := make([]func([]types.NamespacedName), 0, len(t.handlers))
	for _, handler := range t.handlers {
		handlers = append(handlers, handler)
	}
	t.mu.Unlock()
	for _, handler := range handlers {
		handler(names)
	}
}

// Omitted returns the namespaces whose index has no room for an object, sorted. There are none while
// another replica leads.
func (c *Controller) Omitted(object *plan.Plan) []string {
	r := c.reconciler.Load()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for namespace, p := range r.plans {
		if object.Cluster() || namespace == object.Namespace() {
			if _, found := slices.BinarySearch(p.omitted, object.Decision()); found {
				out = append(out, namespace)
			}
		}
	}
	slices.Sort(out)
	return out
}

// HandleOmitted calls changed with objects for which [Controller.Omitted] has changed, until remove is
// called.
func (c *Controller) HandleOmitted(changed func([]types.NamespacedName)) (remove func()) {
	c.told.mu.Lock()
	defer c.told.mu.Unlock()
	c.told.next++
	id := c.told.next
	if c.told.handlers == nil {
		c.told.handlers = map[int]func([]types.NamespacedName){}
	}
	c.told.handlers[id] = changed
	return func() {
		c.told.mu.Lock()
		defer c.told.mu.Unlock()
		delete(c.told.handlers, id)
	}
}

// difference returns what is in one of two sorted lists alone.
func difference(a, b []string) (out []string) {
	for _, lists := range [][2][]string{{a, b}, {b, a}} {
		for _, text := range lists[0] {
			if _, found := slices.BinarySearch(lists[1], text); !found {
				out = append(out, text)
			}
		}
	}
	return out
}
