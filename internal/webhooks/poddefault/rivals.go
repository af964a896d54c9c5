// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// rivals index what overriding objects set, so that a search for a later object only
// visits those that set the same thing.
type rivals struct {
	items                      map[rivalKey][]rival[item]
	podValues, containerValues map[string][]rival[*fieldValue] // by pointer to the field
	annotations                map[string][]rival[string]      // values by key
}

type rivalKey struct{ list, key string }

// A rival is something set by the applied object with this index.
type rival[T any] struct {
	index int
	wants T
}

// workOfRival is the cost of recording one rival, including memory.
const workOfRival = 64

// appliedLater returns the rivals whose objects come after the current one.
func appliedLater[T any](m *merge, all []rival[T]) []rival[T] {
	i, _ := slices.BinarySearchFunc(all, m.index+1, func(r rival[T], index int) int { return r.index - index })
	return all[i:]
}

// rivals builds the index on first use.
func (m *merge) rivals() *rivals {
	if m.overriding != nil {
		return m.overriding
	}
	out := &rivals{
		items:       map[rivalKey][]rival[item]{},
		podValues:   map[string][]rival[*fieldValue]{},
		annotations: map[string][]rival[string]{}, containerValues: map[string][]rival[*fieldValue]{},
	}
	m.overriding = out
	b := &m.pod.bounds
	for i, c := range m.applied {
		values := func(into map[string][]rival[*fieldValue], values []fieldValue) {
			for j := range values {
				if f := &values[j]; f.rule.policy(c) == kubeflowv1alpha1.ConflictOverride {
					b.did(workOfRival)
					id := jsonpatch.Pointer(f.tokens...)
					into[id] = append(into[id], rival[*fieldValue]{i, f})
				}
			}
		}
		values(out.podValues, c.podValues)
		values(out.containerValues, c.containerValues)
		if c.policy != kubeflowv1alpha1.ConflictOverride {
			continue
		}
		c.eachList(func(id string, items []item) {
			for _, w := range items {
				if b.did(workOfRival); b.spent() {
					return
				}
				key := rivalKey{id, w.key}
				out.items[key] = append(out.items[key], rival[item]{i, w})
			}
		})
		for _, a := range c.annotations {
			b.did(workOfRival)
			out.annotations[a.key] = append(out.annotations[a.key], rival[string]{i, a.value})
		}
	}
	return out
}

// Lists that every object has. Lists of fields are identified by pointers.
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
