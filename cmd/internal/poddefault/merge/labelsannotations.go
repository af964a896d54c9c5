// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Values of setEntry.field.
const (
	labelsField      = "labels"
	annotationsField = "annotations"
)

type setEntry struct {
	field  string
	entry  meta.Entry
	origin *plan.Plan
}

// setLabel adds a label. An existing label is never replaced, because Services, policies and
// ClusterPodDefaults select by it.
func (m *Merge) setLabel(wanted meta.Entry, c *plan.Plan) {
	value, there, opponent := m.label(wanted.Key)
	if there {
		if value != wanted.Value {
			m.stuck(c, opponent, "label "+wanted.Key, another(opponent), nil)
		}
		return
	}
	if m.labels == nil {
		m.labels = map[string]int{}
	}
	m.labels[wanted.Key] = len(m.entries)
	m.Pod.Bounds.Did(workOfRival)
	m.Pod.Bounds.Grow(len(wanted.Key) + len(wanted.Value))
	m.entries = append(m.entries, setEntry{labelsField, wanted, c})
}

// label returns a label that the pod has so far, and the object that added it.
func (m *Merge) label(key string) (value string, there bool, by *plan.Plan) {
	if i, ok := m.labels[key]; ok {
		return m.entries[i].entry.Value, true, m.entries[i].origin
	}
	value, there = m.Pod.Metadata.Labels.Lookup(key)
	return value, there, nil
}

func (m *Merge) setAnnotation(wanted meta.Entry, c *plan.Plan) {
	added := setEntry{annotationsField, wanted, c}
	own, has := m.Pod.Metadata.Annotations.Lookup(wanted.Key)
	since := func() bool {
		return m.replacedSince(c, place{plan.AnnotationsMap, wanted.Key}, nil, nil, func(later jsontext.Value) bool { return has && string(later) == own })
	}
	if i, ok := m.annotations[wanted.Key]; ok {
		earlier := &m.entries[i]
		if earlier.entry.Value == wanted.Value || has && own == earlier.entry.Value && m.excused(c, c.Policy, "annotation "+wanted.Key) {
			return
		}
		if m.settle(c, earlier.origin, c.Policy, "annotation "+wanted.Key, another(earlier.origin), since) {
			m.Pod.Bounds.Replaces(len(earlier.entry.Value), len(wanted.Value))
			*earlier = added
		}
		return
	}
	if has && (own == wanted.Value || !m.settle(c, nil, c.Policy, "annotation "+wanted.Key, another(nil), since)) {
		return
	}
	if m.annotations == nil {
		m.annotations = map[string]int{}
	}
	m.annotations[wanted.Key] = len(m.entries)
	m.Pod.Bounds.Grow(len(wanted.Key) + len(wanted.Value))
	m.entries = append(m.entries, added)
}
