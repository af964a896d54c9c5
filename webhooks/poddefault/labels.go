// SPDX-License-Identifier: Apache-2.0

package poddefault

import "slices"

// Labels are a pod's labels as its bytes hold them. They implement
// k8s.io/apimachinery/pkg/labels.Labels. The zero value has none.
type Labels struct {
	list  []label
	index map[string]int // where a key stands; nil if the list is short
}

type label struct{ key, value []byte }

// shortList is how many elements are looked through faster than looked up. What is
// longer has an index, so that no number of them makes a review take long.
const shortList = 32

// Has tells whether the label is there.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the label's value, or the empty string.
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Lookup returns the label's value and whether it is there.
func (l Labels) Lookup(key string) (string, bool) {
	if l.index != nil {
		if i, ok := l.index[key]; ok {
			return string(l.list[i].value), true
		}
		return "", false
	}
	for _, e := range l.list {
		if string(e.key) == key {
			return string(e.value), true
		}
	}
	return "", false
}

// with is a copy that has more labels, of keys that it did not have.
func (l Labels) with(more []setEntry) Labels {
	out := Labels{list: slices.Clip(l.list)}
	for _, e := range more {
		out.list = append(out.list, label{[]byte(e.entry.key), []byte(e.entry.value)})
	}
	out.reindex()
	return out
}

func (l *Labels) reindex() {
	if len(l.list) <= shortList {
		return
	}
	l.index = make(map[string]int, len(l.list))
	for i, e := range l.list {
		if _, ok := l.index[string(e.key)]; !ok {
			l.index[string(e.key)] = i
		}
	}
}
