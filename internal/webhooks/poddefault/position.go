// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// A slot is a place in the final list of containers: an original or an added element.
type slot struct {
	key   string
	was   int   // index in the pod; -1 if added
	added *item // nil for the pod's own
}

// arrange places added containers where their objects want them. The pod's containers
// keep their order. It returns nil if all added containers come last.
func (m *merge) arrange(l *list) []slot {
	positioned := slices.ContainsFunc(l.added, func(w item) bool { return w.origin.position(w.key) != nil })
	if !positioned {
		return nil
	}
	var slots []slot
	for i := range l.length() {
		slots = append(slots, slot{string(l.key(i)), i, nil})
	}
	first := 0 // after those placed first before
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
				behind[p.Container]++ // after those placed there before
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

// position returns where the object wants its container, or nil for no preference.
func (c *Compiled) position(name string) *kubeflowv1alpha1.ContainerPosition {
	for i := range c.positions {
		if c.positions[i].Name == name {
			return &c.positions[i]
		}
	}
	return nil
}

// insert emits added containers one by one, after all edits inside existing ones, and
// moves the origins of those edits to the containers' final places.
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
