// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
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
func (m *merge) replacedSince(c *Compiled, at place, t *container, excluded []string, agrees func(later jsontext.Value) bool) bool {
	if !m.pod.annotations.Has(c.mark) {
		return false
	}
	if m.overriders == nil {
		m.overriders = m.readOverriders()
	}
	return slices.ContainsFunc(m.overriders[at], func(o override) bool {
		return o.index > m.index && (t == nil || m.picks(m.applied[o.index], t, excluded)) && agrees(o.value)
	})
}

// readOverriders returns what objects want at each place where they replace what they find.
func (m *merge) readOverriders() map[place][]override {
	out := map[place][]override{}
	b := &m.pod.bounds
	for i, c := range m.applied {
		if c.template != nil { // its turn is still to come
			c = m.filled(c, func(*field.Path, string) {})
		}
		add := func(list, key string, value jsontext.Value) {
			if b.did(workOfRival); !b.spent() {
				out[place{list, key}] = append(out[place{list, key}], override{i, value})
			}
		}
		values := func(list string, values []fieldValue) {
			for j := range values {
				if f := &values[j]; f.rule.policy(c) == kubeflowv1alpha1.ConflictOverride {
					add(list, jsonpatch.Pointer(f.tokens...), f.value)
				}
			}
		}
		values(podValues, c.podValues)
		values(containerValues, c.containerValues)
		if c.policy != kubeflowv1alpha1.ConflictOverride {
			continue
		}
		c.eachList(func(id string, items []item) {
			for _, w := range items {
				add(id, w.key, w.value)
			}
		})
		for _, a := range c.annotations {
			add(annotationsMap, a.key, jsontext.Value(a.value))
		}
	}
	return out
}

// Lists that every object has. Lists of fields are identified by pointers, which begin with
// a slash.
const (
	envList            = "env"
	envFromList        = "envFrom"
	mountList          = "volumeMounts"
	volumeList         = "volumes"
	tolerationList     = "tolerations"
	pullSecretList     = "imagePullSecrets"
	initContainersList = "initContainers"
	containersList     = "containers"
)

// Other places that objects set.
const (
	annotationsMap  = "metadata.annotations"
	podValues       = "spec"
	containerValues = "spec.containers"
)

// eachList calls visit for each list of the object.
func (c *Compiled) eachList(visit func(id string, items []item)) {
	visit(envList, c.env)
	visit(envFromList, c.envFrom)
	visit(mountList, c.volumeMounts)
	visit(volumeList, c.volumes)
	visit(tolerationList, c.tolerations)
	visit(pullSecretList, c.pullSecrets)
	visit(initContainersList, c.initContainers)
	visit(containersList, c.containers)
	for _, lists := range [][]fieldList{c.podLists, c.containerLists} {
		for i := range lists {
			visit(lists[i].id, lists[i].items)
		}
	}
}
