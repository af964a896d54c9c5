// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"maps"
	"slices"
)

// Labels are a pod's labels, held in its original bytes. They implement
// k8s.io/apimachinery/pkg/labels.Labels. The zero value is empty.
type Labels struct {
	List  []pair
	index map[string]int // positions by key; nil for a short list
	// added holds labels with other keys. A pod may have thousands of labels, which are
	// not copied for each label that a PodDefault adds. May be nil.
	added *Labels
}

type pair struct{ Key, Value []byte }

// ShortList is the length up to which a linear search is faster than a lookup. Longer
// lists have an index, so that no number of elements makes a review slow.
const ShortList = 32

// Has reports whether the label exists.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the label's value, or the empty string.
func (l Labels) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Lookup returns the label's value and whether it exists.
func (l Labels) Lookup(key string) (string, bool) {
	if l.index != nil {
		if i, ok := l.index[key]; ok {
			return string(l.List[i].Value), true
		}
	} else {
		for _, e := range l.List {
			if string(e.Key) == key {
				return string(e.Value), true
			}
		}
	}
	if l.added != nil {
		return l.added.Lookup(key)
	}
	return "", false
}

// With returns the labels with more labels, whose keys must be new.
func (l Labels) With(more []Entry) Labels {
	if len(more) == 0 {
		return l
	}
	added := &Labels{}
	for _, e := range more {
		added.List = append(added.List, pair{[]byte(e.Key), []byte(e.Value)})
	}
	added.reindex()
	l.added = added
	return l
}

// LabelsOf returns labels as of a pod's bytes.
func LabelsOf(set map[string]string) (l Labels) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		l.List = append(l.List, pair{[]byte(key), []byte(set[key])})
	}
	l.reindex()
	return l
}

// Without returns the labels without those with these keys.
func (l Labels) Without(keys map[string]bool) Labels {
	if len(keys) == 0 {
		return l
	}
	rest := Labels{List: make([]pair, 0, len(l.List)), added: l.added}
	for _, e := range l.List {
		if !keys[string(e.Key)] {
			rest.List = append(rest.List, e)
		}
	}
	rest.reindex()
	return rest
}

// Len returns the number of labels.
func (l Labels) Len() int {
	if l.added != nil {
		return len(l.List) + l.added.Len()
	}
	return len(l.List)
}

// Each calls visit for each label.
func (l Labels) Each(visit func(key, value []byte)) {
	for _, e := range l.List {
		visit(e.Key, e.Value)
	}
	if l.added != nil {
		l.added.Each(visit)
	}
}

func (l *Labels) reindex() {
	if len(l.List) <= ShortList {
		return
	}
	l.index = make(map[string]int, len(l.List))
	for i, e := range l.List {
		if _, ok := l.index[string(e.Key)]; !ok {
			l.index[string(e.Key)] = i
		}
	}
}

// An Entry is one label or annotation.
type Entry struct{ Key, Value string }

// Entries returns the entries of a map, ordered by key.
func Entries(m map[string]string) []Entry {
	if len(m) == 0 {
		return nil
	}
	out := make([]Entry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Entry{key, m[key]})
	}
	return out
}
