// SPDX-License-Identifier: Apache-2.0

package backstop

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// tellOmitted tells listeners which objects have room in the index of a namespace again, or no
// longer. Decisions name them as in an index.
func (c *Controller) tellOmitted(namespace string, decisions []string) {
	for _, decision := range decisions {
		name := types.NamespacedName{Namespace: namespace, Name: decision}
		if of, ofCluster := strings.CutPrefix(decision, meta.ClusterDecision); ofCluster {
			name = types.NamespacedName{Name: of}
		}
		c.omitted.Tell(name)
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
	for namespace, omitted := range r.omitted {
		_, found := slices.BinarySearch(omitted, object.Decision())
		if found && (object.Cluster() || namespace == object.Namespace()) {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

// HandleOmitted calls changed with each object for which [Controller.Omitted] has changed, until
// remove is called.
func (c *Controller) HandleOmitted(changed func(types.NamespacedName)) (remove func()) {
	return c.omitted.Add(changed)
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
