// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
)

// A choice holds the objects selected for a pod.
type choice struct {
	objects   []*Compiled // in order of application
	labels    Labels      // of the pod and added by objects
	added     []setEntry  // only the added ones
	audits    bool        // some object is in mode Audit
	outside   []*Compiled // would select the pod in another revision than it gets, or if it were not exempt
	exempted  []Exempted  // those of outside from which the pod is exempt
	namespace string
}

// choose selects the objects for a pod up to a fixed point. A label added by one object
// may select another, unless the first is in mute. Chosen objects stay chosen, and the
// first object to set a label decides its value. For an excluded pod, only objects that
// do not allow exclusion are chosen. Objects from which the pod is exempt are not chosen.
//
// An [*excess] error is a decision.
func choose(b *bounds, source Source, namespace string, pod *metadata, excluded bool, mute []*Compiled) (choice, error) {
	out := choice{labels: pod.labels, namespace: namespace}
	pod.namespace = namespace // it may name none
	arriving := arrival{metadata: pod, bounds: b}
	selectAll := func(pod Labels) ([]*Compiled, error) {
		selected, err := source.Select(b.ctx, namespace, pod)
		if err == nil {
			selected, out.outside, err = arriving.resolve(source, selected)
		}
		if excluded {
			mayExclude := func(c *Compiled) bool { return c.allowExclude }
			selected, out.outside = slices.DeleteFunc(selected, mayExclude), slices.DeleteFunc(out.outside, mayExclude)
		}
		selected, out.exempted = arriving.exempt(source, selected)
		for _, e := range out.exempted {
			out.outside = append(out.outside, e.Compiled)
		}
		// The revision that the pod gets decides what it selects.
		if connector, ok := source.(connector); ok && err == nil {
			err = connector.connect(namespace, selected)
		}
		if b.did(workOfVisit*len(selected) + workOfLabel*pod.len()); b.fault != nil && err == nil {
			err = b.fault
		}
		if err == nil && b.over != "" {
			err = &excess{all: selected, text: b.over, remedy: "Have fewer of them select by labels that others add"}
		}
		if err == nil && len(selected) > maxObjects {
			err = &excess{all: selected, text: fmt.Sprintf("%d of them select it, and at most %d may", len(selected), maxObjects),
				remedy: "Have fewer of them select the same pods"}
		}
		if err != nil {
			return nil, err
		}
		size := 0
		for _, c := range selected {
			size += c.size
		}
		if size > maxSelected {
			return nil, &excess{all: selected, text: fmt.Sprintf("the specs of those that select it have %d bytes of JSON, and at most %d may", size, maxSelected),
				remedy: "Have fewer of them select the same pods"}
		}
		for _, c := range selected {
			if err := c.unpack().unreadable; err != nil {
				return nil, err
			}
		}
		return selected, nil
	}
	var keys map[string]bool // of the added labels
	var err error
	out.objects, err = selectAll(pod.labels)
	for round := 1; err == nil; round++ {
		known := len(out.added)
		for _, c := range out.objects {
			out.audits = out.audits || c.audit
			if c.audit || c.problem != nil || len(c.labels) == 0 || isIn(mute, c) {
				continue
			}
			for _, l := range c.labels {
				if b.did(1); out.labels.Has(l.key) || keys[l.key] {
					continue
				}
				b.did(workOfRival)
				if keys == nil {
					keys = map[string]bool{}
				}
				keys[l.key] = true
				out.added = append(out.added, setEntry{"labels", l, c})
			}
		}
		if len(out.added) == known {
			return out, nil
		}
		if round > maxLabelRounds {
			last := out.added[len(out.added)-1].origin
			return choice{}, &excess{object: last, text: fmt.Sprintf("its labels would select further PodDefaults, after %d times that labels of PodDefaults did", maxLabelRounds),
				remedy: "Have fewer of them select by labels that others add"}
		}
		out.labels = out.labels.with(out.added[known:])
		var more []*Compiled
		if more, err = selectAll(out.labels); err == nil {
			titles := make(map[string]bool, len(out.objects))
			for _, c := range out.objects {
				titles[c.title] = true
			}
			for _, c := range more {
				if !titles[c.title] {
					out.objects = append(out.objects, c)
				}
			}
			slices.SortFunc(out.objects, inOrder)
		}
	}
	return choice{}, err
}

// silence adds unused objects that add labels to mute and reports whether there were
// new ones. An object that is not applied adds no label, so it must not select others
// through one.
func silence(unused []*Compiled, mute *[]*Compiled) bool {
	known := len(*mute)
	for _, c := range unused {
		if c.problem == nil && len(c.labels) > 0 && !isIn(*mute, c) {
			*mute = append(*mute, c)
		}
	}
	return len(*mute) > known
}

// isIn compares titles, because an object may have been read again or filled in.
func isIn(list []*Compiled, c *Compiled) bool {
	return slices.ContainsFunc(list, func(other *Compiled) bool { return other == c || other.title == c.title })
}
