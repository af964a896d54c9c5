// SPDX-License-Identifier: Apache-2.0

package poddefault

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
		for _, mine := range list.mine {
			for _, theirs := range list.other {
				if mine.key == theirs.key && len(list.kind.differences(mine.value, theirs.value)) > 0 {
					places = append(places, list.kind.name+" "+mine.key)
				}
			}
		}
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
	if c.serviceAccountName != "" && other.serviceAccountName != "" && c.serviceAccountName != other.serviceAccountName {
		places = append(places, "serviceAccountName")
	}
	return places
}
