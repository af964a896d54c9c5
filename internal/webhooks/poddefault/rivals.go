// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// rivals are what objects want that override, by what they want it for: who looks for
// one that is applied later looks at those that want the same thing alone.
type rivals struct {
	items                      map[rivalKey][]rival[item]
	podValues, containerValues map[string][]rival[*fieldValue] // by the pointer to the field
	annotations                map[string][]rival[string]      // values by key
}

type rivalKey struct{ list, key string }

// A rival is something that the applied object of an index wants.
type rival[T any] struct {
	index int
	wants T
}

// workOfRival is what it costs to note one, memory included.
const workOfRival = 64

// appliedLater are those of the rivals whose objects are applied after the present one.
func appliedLater[T any](m *merge, all []rival[T]) []rival[T] {
	i, _ := slices.BinarySearchFunc(all, m.index+1, func(r rival[T], index int) int { return r.index - index })
	return all[i:]
}

// rivals indexes what the applied objects want, when it is first asked for.
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

// The lists that every object has; those of fields have pointers.
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

// eachList calls visit for each list of elements that the object has.
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
