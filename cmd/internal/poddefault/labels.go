// SPDX-License-Identifier: Apache-2.0

package poddefault

// Labels are a pod's labels, held in its original bytes. They implement
// k8s.io/apimachinery/pkg/labels.Labels. The zero value is empty.
type Labels struct {
	list  []label
	index map[string]int // positions by key; nil for a short list
	// added holds labels with other keys. A pod may have thousands of labels, which are
	// not copied for each label that a PodDefault adds. May be nil.
	added *Labels
}

type label struct{ key, value []byte }

// shortList is the length up to which a linear search is faster than a lookup. Longer
// lists have an index, so that no number of elements makes a review slow.
const shortList = 32

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
			return string(l.list[i].value), true
		}
	} else {
		for _, e := range l.list {
			if string(e.key) == key {
				return string(e.value), true
			}
		}
	}
	if l.added != nil {
		return l.added.Lookup(key)
	}
	return "", false
}

// with returns the labels with more labels, whose keys must be new.
func (l Labels) with(more []entry) Labels {
	if len(more) == 0 {
		return l
	}
	added := &Labels{}
	for _, e := range more {
		added.list = append(added.list, label{[]byte(e.key), []byte(e.value)})
	}
	added.reindex()
	l.added = added
	return l
}

// without returns the labels without those with these keys.
func (l Labels) without(keys map[string]bool) Labels {
	if len(keys) == 0 {
		return l
	}
	rest := Labels{list: make([]label, 0, len(l.list)), added: l.added}
	for _, e := range l.list {
		if !keys[string(e.key)] {
			rest.list = append(rest.list, e)
		}
	}
	rest.reindex()
	return rest
}

// len returns the number of labels.
func (l Labels) len() int {
	if l.added != nil {
		return len(l.list) + l.added.len()
	}
	return len(l.list)
}

// each calls visit for each label.
func (l Labels) each(visit func(key, value []byte)) {
	for _, e := range l.list {
		visit(e.key, e.value)
	}
	if l.added != nil {
		l.added.each(visit)
	}
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
