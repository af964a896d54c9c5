// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"iter"
	"slices"
)

// disagreements names the places of a pod for which c and other want different
// things.
func (c *Compiled) disagreements(other *Compiled) []string {
	var places []string
	for _, list := range []struct {
		kind        *listKind
		mine, other []item
	}{
		{envKind, c.env, other.env},
		{envFromKind, c.envFrom, other.envFrom},
		{mountKind, c.volumeMounts, other.volumeMounts},
		{volumeKind, c.volumes, other.volumes},
		{tolerationKind, c.tolerations, other.tolerations},
		{containerKind, c.initContainers, other.initContainers},
		{containerKind, c.containers, other.containers},
	} {
		places = append(places, differing(list.kind, list.mine, list.other)...)
	}
	for _, map_ := range []struct {
		name        string
		mine, other []entry
	}{{"label", c.labels, other.labels}, {"annotation", c.annotations, other.annotations}} {
		for mine, theirs := range sameKey(map_.mine, map_.other, func(e entry) string { return e.key }) {
			if mine.value != theirs.value {
				places = append(places, map_.name+" "+mine.key)
			}
		}
	}
	for i := range c.podLists {
		f := &c.podLists[i]
		places = append(places, differing(f.kind, f.items, f.of(other))...)
	}
	for i := range c.containerLists {
		f := &c.containerLists[i]
		places = append(places, differing(f.kind, f.items, f.of(other))...)
	}
	for _, values := range [][2][]fieldValue{{c.podValues, other.podValues}, {c.containerValues, other.containerValues}} {
		for i := range values[0] {
			for j := range values[1] {
				mine, theirs := &values[0][i], &values[1][j]
				if slices.Equal(mine.tokens, theirs.tokens) && len(subset(mine.value, theirs.value))+len(subset(theirs.value, mine.value)) > 0 {
					places = append(places, mine.name())
				}
			}
		}
	}
	for _, lists := range [][2][]item{{c.initContainers, other.containers}, {c.containers, other.initContainers}} {
		for mine := range sameKey(lists[0], lists[1], itemKey) {
			places = append(places, "container "+mine.key)
		}
	}
	return places
}

// differing names the elements of which both lists have another one.
func differing(kind *listKind, mine, theirs []item) (places []string) {
	for m, t := range sameKey(mine, theirs, itemKey) {
		if len(kind.differences(m.value, t.value)) > 0 {
			places = append(places, place(kind, m.key, nil))
		}
	}
	return places
}

func itemKey(i item) string { return i.key }

// sameKey yields the pairs of elements that have the same key, in the order of the lists.
func sameKey[T any](mine, theirs []T, key func(T) string) iter.Seq2[T, T] {
	return func(yield func(T, T) bool) {
		byKey := make(map[string][]T, len(theirs))
		if len(mine) > 0 {
			for _, t := range theirs {
				byKey[key(t)] = append(byKey[key(t)], t)
			}
		}
		for _, m := range mine {
			for _, t := range byKey[key(m)] {
				if !yield(m, t) {
					return
				}
			}
		}
	}
}
