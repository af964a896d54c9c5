// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// errNoPod says that what should be a pod has no spec, or containers that are not objects.
var errNoPod = errors.New("not a pod")

// A folding folds objects into one pod, as often as objects are dropped. The pod's metadata
// and bounds are parameters, because they would not stay on the stack beside raw.
type folding struct {
	raw       []byte
	leftAlone *LeftAlone
}

// settle folds the matched objects into the pod, and anew without an object that Skip, or a
// rule of the finished pod, drops: at most once for each. An error is [errNoPod], an
// [*excess], or a fault; with an excess, the merge so far is returned too.
func (f *folding) settle(md *metadata, b *bounds, of match) (*merge, error) {
	skipped := skippedBefore(of, md, b)
	for {
		m, err := f.fold(md, b, of, skipped)
		if err != nil {
			return m, err
		}
		if m.dropped == nil {
			return m, f.alternatives(md, b, m, of)
		}
		skipped = append(skipped, skip{object: m.dropped.object, conflict: m.dropped,
			reason: strings.TrimPrefix(m.dropped.text, m.dropped.object.title+": ")})
	}
}

// fold folds the matched objects, except skipped ones, into a copy of the pod.
func (f *folding) fold(md *metadata, b *bounds, of match, skipped []skip) (*merge, error) {
	pod, ok := readPod(f.raw, *md, of.objects, b.another())
	if !ok {
		return nil, errNoPod
	}
	m := mergeAll(pod, of, skipped, f.leftAlone)
	*b = pod.bounds
	return m, m.beyond()
}

// alternatives denies a pod that selects two objects of an exclusive group. One that is
// skipped, with and without the others, does not count.
func (f *folding) alternatives(md *metadata, b *bounds, m *merge, of match) error {
	groups := map[string][]*Compiled{}
	for _, c := range of.objects {
		if c.group != "" && !c.audit && c.problem == nil {
			groups[c.group] = append(groups[c.group], c)
		}
	}
	for _, members := range groups {
		if len(members) < 2 {
			delete(groups, members[0].group)
		}
	}
	first := map[string]*Compiled{}
	for _, c := range of.objects {
		if groups[c.group] == nil || c.audit || c.problem != nil {
			continue
		}
		applies := isIn(m.applied, c)
		if !applies {
			alone := of
			alone.objects = nil
			for _, other := range of.objects {
				if other.group != c.group || other == c {
					alone.objects = append(alone.objects, other)
				}
			}
			without, err := f.settle(md, b, alone)
			if err != nil {
				return err
			}
			applies = isIn(without.applied, c)
		}
		switch {
		case applies && first[c.group] == nil:
			first[c.group] = c
		case applies:
			m.conflict(conflict{object: c, opponent: first[c.group], way: "choose one of the alternatives"},
				"%s are alternatives of the exclusive group %s, and the pod selects both", both(first[c.group], c), c.group)
		}
	}
	return nil
}

// addedLabels returns the labels that the objects add to the pod.
func (m *merge) addedLabels() (added []entry) {
	if m == nil || len(m.labels) == 0 {
		return nil
	}
	for _, e := range m.entries {
		if e.field == labelsField {
			added = append(added, e.entry)
		}
	}
	return added
}

// denyFurther denies a pod whose labels would select yet another object that does not allow
// exclusion, because of labels of objects that only such labels have selected.
func (m *merge) denyFurther(s *matcher, source Source, of match) (match, error) {
	out, more, err := s.byStored(source, of, m.addedLabels())
	for _, c := range more {
		by := m.selecting(c)
		m.conflict(conflict{object: c, opponent: by, way: "create the pod with the labels that select it"},
			"%s is selected by labels that %s adds, which itself is selected only by added labels", c, holderName(by))
	}
	return out, err
}

// selecting returns the last object that adds a label by which another one selects pods.
func (m *merge) selecting(c *Compiled) *Compiled {
	requirements, _ := c.selector.Requirements()
	for _, e := range slices.Backward(m.entries) {
		if e.field == labelsField && slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == e.entry.key }) {
			return e.origin
		}
	}
	return nil
}

// A skip is an object that is skipped because of a conflict.
type skip struct {
	object *Compiled
	reason string
	// conflict is nil if an earlier call has decided it.
	conflict *conflict
}
