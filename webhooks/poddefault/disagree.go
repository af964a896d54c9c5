// SPDX-License-Identifier: Apache-2.0

package poddefault

import "slices"

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
		for _, mine := range map_.mine {
			for _, theirs := range map_.other {
				if mine.key == theirs.key && mine.value != theirs.value {
					places = append(places, map_.name+" "+mine.key)
				}
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
		for _, mine := range lists[0] {
			if slices.ContainsFunc(lists[1], func(theirs item) bool { return theirs.key == mine.key }) {
				places = append(places, "container "+mine.key)
			}
		}
	}
	return places
}

// differing names the elements of which both lists have another one.
func differing(kind *listKind, mine, theirs []item) (places []string) {
	for _, m := range mine {
		for _, t := range theirs {
			if m.key == t.key && len(kind.differences(m.value, t.value)) > 0 {
				places = append(places, place(kind, m.key, nil))
			}
		}
	}
	return places
}
