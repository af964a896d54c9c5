// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"iter"

	"github.com/sallyport-io/sallyport/jsonpatch"
)

// disagreements returns the places of a pod where c and other conflict or where finding
// out is too expensive. No pod gets both.
func disagreements(b *bounds, c, other *Compiled) []string {
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
		places = append(places, differing(b, list.kind, list.mine, list.other)...)
	}
	for _, map_ := range []struct {
		name        string
		mine, other []entry
	}{{"label", c.labels, other.labels}, {"annotation", c.annotations, other.annotations}} {
		for mine, theirs := range sameKey(b, map_.mine, map_.other, func(e entry) string { return e.key }) {
			if mine.value != theirs.value {
				places = append(places, map_.name+" "+mine.key)
			}
		}
	}
	for i := range c.podLists {
		f := &c.podLists[i]
		places = append(places, differing(b, f.kind, f.items, f.of(other))...)
	}
	for i := range c.containerLists {
		f := &c.containerLists[i]
		places = append(places, differing(b, f.kind, f.items, f.of(other))...)
	}
	for _, values := range [][2][]fieldValue{{c.podValues, other.podValues}, {c.containerValues, other.containerValues}} {
		pointer := func(f *fieldValue) string { return jsonpatch.Pointer(f.tokens...) }
		for mine, theirs := range sameKey(b, pointers(values[0]), pointers(values[1]), pointer) {
			if !b.compares(mine.value, theirs.value) || len(subset(mine.value, theirs.value))+len(subset(theirs.value, mine.value)) > 0 {
				places = append(places, mine.name())
			}
		}
	}
	for _, lists := range [][2][]item{{c.initContainers, other.containers}, {c.containers, other.initContainers}} {
		for mine := range sameKey(b, lists[0], lists[1], itemKey) {
			places = append(places, "container "+mine.key)
		}
	}
	return places
}

// differing names the elements that differ between the two lists.
func differing(b *bounds, kind *listKind, mine, theirs []item) (places []string) {
	for m, t := range sameKey(b, mine, theirs, itemKey) {
		if len(kind.compare(b, m.value, t.value)) > 0 || b.spent() {
			places = append(places, kind.name+" "+m.key)
		}
	}
	return places
}

func itemKey(i item) string { return i.key }

func pointers[T any](values []T) []*T {
	out := make([]*T, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// sameKey yields the pairs of elements with the same key, in list order.
func sameKey[T any](b *bounds, mine, theirs []T, key func(T) string) iter.Seq2[T, T] {
	return func(yield func(T, T) bool) {
		if len(mine) == 0 || len(theirs) == 0 {
			return
		}
		byKey := make(map[string][]T, len(theirs))
		for _, t := range theirs {
			byKey[key(t)] = append(byKey[key(t)], t)
		}
		b.did(len(mine) + len(theirs))
		for _, m := range mine {
			for _, t := range byKey[key(m)] {
				if !yield(m, t) {
					return
				}
			}
		}
	}
}
