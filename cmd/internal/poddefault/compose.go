// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// compose merges what other objects add into a container that a PodDefault adds. Its
// bytes are not the user's, so it may be re-encoded.
func (c *container) compose() jsontext.Value {
	lists := c.ownLists()
	changed := len(c.values) > 0
	for _, l := range lists {
		changed = changed || len(l.added)+len(l.replaced) > 0
	}
	tree, ok := decode(c.raw).(map[string]any)
	if !changed || !ok {
		return c.raw
	}
	for _, l := range lists {
		if len(l.added)+len(l.replaced) == 0 {
			continue
		}
		object := below(tree, l.tokens[:len(l.tokens)-1])
		name := l.tokens[len(l.tokens)-1]
		elements, _ := object[name].([]any)
		for _, r := range l.replaced {
			elements[r.index] = decode(r.value)
		}
		for _, added := range l.added {
			elements = append(elements, decode(added.value))
		}
		object[name] = elements
	}
	for _, v := range c.values {
		if !v.there {
			below(tree, v.tokens[:len(v.tokens)-1])[v.tokens[len(v.tokens)-1]] = decode(v.value)
		}
	}
	out, err := json.Marshal(tree)
	if err != nil { // a decoded value can be encoded
		return c.raw
	}
	return out
}

// ownLists returns all lists of the container that may grow.
func (c *container) ownLists() []*heldList {
	lists := []*heldList{
		{[]string{"env"}, c.env}, {[]string{"envFrom"}, c.envFrom}, {[]string{"volumeMounts"}, c.volumeMounts},
	}
	return append(lists, c.lists...)
}

// below returns the object at the names and creates it if missing.
func below(tree map[string]any, names []string) map[string]any {
	for _, name := range names {
		next, ok := tree[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[name] = next
		}
		tree = next
	}
	return tree
}

// finish inserts the containers of PodDefaults, with everything added to them, into
// their lists.
func (m *merge) finish() {
	for _, fresh := range m.fresh {
		value := fresh.compose()
		l := &m.pod.containers
		if fresh.init {
			l = &m.pod.initContainers
		}
		for i := range l.added {
			if l.added[i].key == fresh.name {
				l.added[i].value = value
			}
		}
		for i := range l.replaced {
			if l.replaced[i].key == fresh.name {
				l.replaced[i].value = value
			}
		}
	}
}

// cutPath cuts a pointer and a slash from the beginning of path.
func cutPath(path, prefix string) (rest string, ok bool) {
	return strings.CutPrefix(path, prefix+"/")
}

// splitIndex splits an index from the pointer below it; -1 if there is none.
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
