// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A place is an element of a list, a key of a map, or a field: of the pod, or of any container.
type place struct{ list, key string }

// workOfRival is the cost of recording one place, including memory.
const workOfRival = 64

// overridden reports whether a later object with the policy Override sets the same place,
// and has been applied to the pod before. What the pod has there is then that object's, or
// was of an earlier version of it. Objects before it found nothing to conflict with at that
// time, and their values give way to that object's whatever the pod has: a forged mark gains
// nothing. It is false for nearly all pods, which no object has been applied to.
func (m *merge) overridden(at place, t *container, excluded []string) bool {
	if !m.overrode {
		return false
	}
	if m.overriders == nil {
		m.overriders = m.readOverriders()
	}
	all := m.overriders[at]
	later, _ := slices.BinarySearch(all, m.index+1)
	return slices.ContainsFunc(all[later:], func(i int) bool { return t == nil || m.picks(m.applied[i], t, excluded) })
}

// readOverriders returns the positions of the objects that override each place, and have
// been applied to the pod before.
func (m *merge) readOverriders() map[place][]int {
	out := map[place][]int{}
	b := &m.pod.bounds
	for i, c := range m.applied {
		if !m.pod.annotations.Has(c.mark) {
			continue
		}
		add := func(list, key string) {
			if b.did(workOfRival); !b.spent() {
				out[place{list, key}] = append(out[place{list, key}], i)
			}
		}
		values := func(list string, values []fieldValue) {
			for j := range values {
				if f := &values[j]; f.rule.policy(c) == kubeflowv1alpha1.ConflictOverride {
					add(list, jsonpatch.Pointer(f.tokens...))
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
				add(id, w.key)
			}
		})
		for _, a := range c.annotations {
			add(annotationsMap, a.key)
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
