// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// A slot is a place in a list of containers as it will be: an element that the pod
// came with, or one that is added.
type slot struct {
	key   string
	was   int   // index in the pod; -1: it is added
	added *item // nil: the pod came with it
}

// arrange puts the containers that are added where their objects want them. Those of
// the pod keep their order. It returns nil if all that is added comes last.
func (m *merge) arrange(l *list) []slot {
	positioned := slices.ContainsFunc(l.added, func(w item) bool { return w.origin.position(w.key) != nil })
	if !positioned {
		return nil
	}
	var slots []slot
	for i := range l.length() {
		slots = append(slots, slot{string(l.key(i)), i, nil})
	}
	first := 0 // behind those that came first before
	behind := map[string]int{}
	for i := range l.added {
		w := &l.added[i]
		at := len(slots)
		if p := w.origin.position(w.key); p != nil {
			beside := slices.IndexFunc(slots, func(s slot) bool { return s.key == p.Container })
			relative := p.Place == kubeflowv1alpha1.PlaceBefore || p.Place == kubeflowv1alpha1.PlaceAfter
			switch {
			case p.Place == kubeflowv1alpha1.PlaceFirst:
				at = first
				first++
			case relative && beside < 0:
				m.warn("%s: container %s comes last: there is no container %s in %s", w.origin, w.key, p.Container, l.field)
			case p.Place == kubeflowv1alpha1.PlaceBefore:
				at = beside
			case p.Place == kubeflowv1alpha1.PlaceAfter:
				behind[p.Container]++ // those that came behind it before stay there
				at = min(beside+behind[p.Container], len(slots))
			}
			if relative && beside >= 0 && at < first {
				first++
			}
		}
		slots = slices.Insert(slots, at, slot{w.key, -1, w})
	}
	return slots
}

// position is where the object wants its container; nil if it does not say.
func (c *Compiled) position(name string) *kubeflowv1alpha1.ContainerPosition {
	for i := range c.positions {
		if c.positions[i].Name == name {
			return &c.positions[i]
		}
	}
	return nil
}

// insert emits what is added to a list of containers one by one, after all that was
// edited inside of those that were there, and moves the origins of these edits to
// where their containers are then.
func (e *emitter) insert(l *list, slots []slot) {
	path := l.path()
	if l.length() == 0 {
		values := make([]byte, 0, 256)
		values = append(values, '[')
		for i, s := range slots {
			if i > 0 {
				values = append(values, ',')
			}
			values = append(values, s.added.value...)
		}
		e.set(path, append(jsontext.Value(values), ']'), nil)
	}
	e.move(path, slots)
	for i, s := range slots {
		if s.added == nil {
			continue
		}
		if l.length() == 0 {
			e.originAt(path, i, s.added.origin)
		} else {
			e.set(path+"/"+strconv.Itoa(i), s.added.value, s.added.origin)
		}
	}
}

// move corrects the origins below a list of containers.
func (e *emitter) move(path string, slots []slot) {
	for i := range e.origins {
		rest, ok := cutPath(e.origins[i].Path, path)
		if !ok {
			continue
		}
		index, below := splitIndex(rest)
		if to := slices.IndexFunc(slots, func(s slot) bool { return s.was == index }); index >= 0 && to >= 0 {
			e.origins[i].Path = path + "/" + strconv.Itoa(to) + below
		}
	}
}
