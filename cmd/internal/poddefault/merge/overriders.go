// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A place is an element of a list, a key of a map, or a field: of the pod, or of any container.
type place struct{ list, key string }

// workOfRival is the cost of recording one place, including memory.
const workOfRival = 64

// An override is what an object wants at a place where it replaces what it finds.
type override struct {
	index int // of the object
	value jsontext.Value
}

// replacedSince reports whether the pod was injected by the object before, and a later object
// that replaces what it finds wants what the pod has at the place: then that object has
// replaced the value of this one, which found nothing to conflict with. A forged mark gains
// nothing, because that object's value is stored either way.
func (ar *arbiter) replacedSince(c *plan.Plan, at place, t *podstate.Container, excluded []string, agrees func(later jsontext.Value) bool) bool {
	if !ar.Pod.Annotations.Has(c.MarkKey) {
		return false
	}
	if ar.overriders == nil {
		ar.overriders = ar.readOverriders()
	}
	return slices.ContainsFunc(ar.overriders[at], func(o override) bool {
		return o.index > ar.index && (t == nil || ar.picks(ar.Applied[o.index], t, excluded)) && agrees(o.value)
	})
}

// readOverriders returns what objects want at each place where they replace what they find.
func (ar *arbiter) readOverriders() map[place][]override {
	out := map[place][]override{}
	b := &ar.Pod.Bounds
	for i, c := range ar.Applied {
		if c.Template != nil { // its turn is still to come
			c = ar.filled(c, func(*field.Path, string) {})
		}
		add := func(list, key string, value jsontext.Value) {
			if b.Did(workOfRival); !b.Spent() {
				out[place{list, key}] = append(out[place{list, key}], override{i, value})
			}
		}
		values := func(list string, values []plan.FieldValue) {
			for j := range values {
				if f := &values[j]; f.Rule.Policy(c) == kubeflowv1alpha1.ConflictOverride {
					add(list, jsonpatch.Pointer(f.Tokens...), f.Value)
				}
			}
		}
		values(plan.PodValues, c.PodValues)
		values(plan.ContainerValues, c.ContainerValues)
		if c.Policy != kubeflowv1alpha1.ConflictOverride {
			continue
		}
		c.EachList(func(id string, _ *plan.ListKind, items []plan.Item) {
			for _, w := range items {
				add(id, w.Key, w.Value)
			}
		})
		for _, a := range c.Annotations {
			add(plan.AnnotationsMap, a.Key, jsontext.Value(a.Value))
		}
	}
	return out
}

// replacedValueSince is [arbiter.replacedSince] for a field.
func (ar *arbiter) replacedValueSince(h *podstate.Holder, t *podstate.Container, c *plan.Plan, f *plan.FieldValue) bool {
	values, excluded := plan.PodValues, []string(nil)
	if t != nil {
		values, excluded = plan.ContainerValues, ar.mesh
	}
	if f.Rule.Command {
		excluded = ar.leftAlone.Commands
	}
	have, ok := h.Lookup(f.Tokens...)
	return ok && ar.replacedSince(c, place{values, jsonpatch.Pointer(f.Tokens...)}, t, excluded, func(later jsontext.Value) bool {
		return f.Rule.Satisfies(h.Bounds, later, have)
	})
}
