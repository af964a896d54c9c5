// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strconv"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podstate"
)

// A slot is a place in the final list of containers: an original or an added element.
type slot struct {
	key   string
	was   int        // index in the pod; -1 if added
	added *plan.Item // nil for the pod's own
}

// arrange places added containers where their objects want them, also beside one that a later object adds. The pod's
// containers keep their order, and so do containers with the same place. It returns nil if all added containers come last.
func (m *Merge) arrange(l *podstate.List) []slot {
	positioned := slices.ContainsFunc(l.Added, func(w plan.Item) bool { return w.Origin.Position(w.Key) != nil })
	if !positioned {
		return nil
	}
	var all []slot
	for i := range l.Length() {
		all = append(all, slot{string(l.Key(i)), i, nil})
	}
	for i := range l.Added {
		all = append(all, slot{l.Added[i].Key, -1, &l.Added[i]})
	}
	names := map[string]bool{}
	for _, s := range all {
		names[s.key] = true
	}
	var rest []slot // in their turn
	seated := map[kubeflowv1alpha1.ContainerPosition][]slot{}
	for _, s := range all {
		switch p := s.position(); {
		case p.Place == "" || p.Place == kubeflowv1alpha1.PlaceLast:
			rest = append(rest, s)
		case p.Container != "" && !names[p.Container]:
			m.warn("%s: container %s comes last: there is no container %s in %s", s.added.Origin, s.key, p.Container, l.Field)
			rest = append(rest, s)
		default:
			p.Name = ""
			seated[p] = append(seated[p], s)
		}
	}
	slots := make([]slot, 0, len(all))
	var seat func([]slot)
	beside := func(place kubeflowv1alpha1.ContainerPlace, name string) {
		seats := kubeflowv1alpha1.ContainerPosition{Place: place, Container: name}
		next := seated[seats]
		delete(seated, seats)
		seat(next)
	}
	seat = func(next []slot) {
		for _, s := range next {
			beside(kubeflowv1alpha1.PlaceBefore, s.key)
			slots = append(slots, s)
			beside(kubeflowv1alpha1.PlaceAfter, s.key)
		}
	}
	beside(kubeflowv1alpha1.PlaceFirst, "")
	seat(rest)
	for _, s := range all { // what is left refers to each other
		if p := s.position(); len(seated[kubeflowv1alpha1.ContainerPosition{Place: p.Place, Container: p.Container}]) > 0 {
			m.warn("%s: container %s comes last: its position and that of container %s depend on each other", s.added.Origin, s.key, p.Container)
			slots = append(slots, s)
		}
	}
	return slots
}

// position returns where the container's object wants it; the zero value for no preference.
func (s slot) position() kubeflowv1alpha1.ContainerPosition {
	if s.added != nil {
		if p := s.added.Origin.Position(s.key); p != nil {
			return *p
		}
	}
	return kubeflowv1alpha1.ContainerPosition{}
}

// insert emits added containers one by one, after all edits inside existing ones, and
// moves the origins of those edits to the containers' final places.
func (e *emitter) insert(l *podstate.List, slots []slot) {
	path := l.Path()
	if l.Length() == 0 {
		values := make([]byte, 0, 256)
		values = append(values, '[')
		for i, s := range slots {
			if i > 0 {
				values = append(values, ',')
			}
			values = append(values, s.added.Value...)
		}
		e.Add(path, append(values, ']'))
	}
	e.move(path, slots)
	for i, s := range slots {
		if s.added == nil {
			continue
		}
		if l.Length() > 0 {
			e.Add(path+"/"+strconv.Itoa(i), s.added.Value)
		}
		e.OriginAt(s.added.Origin, path, i)
	}
}

// move corrects the origins below a list of containers.
func (e *emitter) move(path string, slots []slot) {
	for i := range e.Origins {
		rest, ok := cutPath(e.Origins[i].Path, path)
		if !ok {
			continue
		}
		index, below := splitIndex(rest)
		if to := slices.IndexFunc(slots, func(s slot) bool { return s.was == index }); index >= 0 && to >= 0 {
			e.Origins[i].Path = path + "/" + strconv.Itoa(to) + below
		}
	}
}

// finish inserts the containers of PodDefaults, with everything added to them, into
// their lists.
func (m *Merge) finish() {
	for _, fresh := range m.fresh {
		value := fresh.Compose()
		l := &m.Pod.Containers
		if fresh.Init {
			l = &m.Pod.InitContainers
		}
		for i := range l.Added {
			if l.Added[i].Key == fresh.Name {
				l.Added[i].Value = value
			}
		}
		for i := range l.Replaced {
			if l.Replaced[i].Key == fresh.Name {
				l.Replaced[i].Value = value
			}
		}
	}
}

// cutPath cuts a pointer and a slash from the beginning of path.
func cutPath(path, prefix string) (rest string, ok bool) {
	return strings.CutPrefix(path, prefix+"/")
}

// splitIndex splits an index, -1 if missing, from the pointer below it.
func splitIndex(rest string) (index int, below string) {
	head, tail, deeper := strings.Cut(rest, "/")
	index, err := strconv.Atoi(head)
	if err != nil {
		return -1, ""
	}
	if deeper {
		below = "/" + tail
	}
	return index, below
}
