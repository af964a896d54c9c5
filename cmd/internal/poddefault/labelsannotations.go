// SPDX-License-Identifier: Apache-2.0

package poddefault

import "github.com/go-json-experiment/json/jsontext"

// Values of setEntry.field.
const (
	labelsField      = "labels"
	annotationsField = "annotations"
)

type setEntry struct {
	field  string
	entry  entry
	origin *Compiled
}

// setLabel adds a label. An existing label is never replaced, because Services, policies and
// ClusterPodDefaults select by it.
func (m *merge) setLabel(wanted entry, c *Compiled) {
	value, there, opponent := m.label(wanted.key)
	if there {
		if value != wanted.value {
			m.stuck(c, opponent, "label "+wanted.key, another(opponent), nil)
		}
		return
	}
	if m.labels == nil {
		m.labels = map[string]int{}
	}
	m.labels[wanted.key] = len(m.entries)
	m.pod.bounds.did(workOfRival)
	m.pod.bounds.grow(len(wanted.key) + len(wanted.value))
	m.entries = append(m.entries, setEntry{labelsField, wanted, c})
}

// label returns a label that the pod has so far, and the object that added it.
func (m *merge) label(key string) (value string, there bool, by *Compiled) {
	if i, ok := m.labels[key]; ok {
		return m.entries[i].entry.value, true, m.entries[i].origin
	}
	value, there = m.pod.metadata.labels.Lookup(key)
	return value, there, nil
}

func (m *merge) setAnnotation(wanted entry, c *Compiled) {
	added := setEntry{annotationsField, wanted, c}
	own, has := m.pod.metadata.annotations.Lookup(wanted.key)
	since := func() bool {
		return m.replacedSince(c, place{annotationsMap, wanted.key}, nil, nil, func(later jsontext.Value) bool { return has && string(later) == own })
	}
	if i, ok := m.annotations[wanted.key]; ok {
		earlier := &m.entries[i]
		if earlier.entry.value == wanted.value || has && own == earlier.entry.value && m.excused(c, c.policy, "annotation "+wanted.key) {
			return
		}
		if m.settle(c, earlier.origin, c.policy, "annotation "+wanted.key, another(earlier.origin), since) {
			m.pod.bounds.replaces(len(earlier.entry.value), len(wanted.value))
			*earlier = added
		}
		return
	}
	if has && (own == wanted.value || !m.settle(c, nil, c.policy, "annotation "+wanted.key, another(nil), since)) {
		return
	}
	if m.annotations == nil {
		m.annotations = map[string]int{}
	}
	m.annotations[wanted.key] = len(m.entries)
	m.pod.bounds.grow(len(wanted.key) + len(wanted.value))
	m.entries = append(m.entries, added)
}
