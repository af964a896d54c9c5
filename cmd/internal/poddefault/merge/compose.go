// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strconv"
	"strings"
)

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
