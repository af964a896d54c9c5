// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// decisions returns the value of [meta.DecisionsAnnotation]. An existing list stays if it
// covers every considered object: labels that objects add may change which objects
// select the pod.
func decisions(listed string, objects ...[]*plan.Plan) string {
	size := 0
	for _, group := range objects {
		size += len(group)
	}
	names := make([]string, 0, size)
	for _, group := range objects {
		for _, c := range group {
			names = append(names, c.Decision())
		}
	}
	if listed != "" {
		known := plan.ListedAmong(listed, objects...)
		if !slices.ContainsFunc(names, func(name string) bool { return !known[name] }) {
			return listed
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// recorded returns the value of [meta.RevisionsAnnotation] for the finished pod, as JSON, or nil
// if the pod has it already or there is nothing to record. The record of an object stays
// with its mark: a pod that is sent again with a mark keeps what an earlier revision gave
// it. Of an object that does not allow exclusion, a wrong record is corrected.
func (m *Merge) recorded() jsontext.Value {
	present := m.Pod.Annotations.Get(meta.RevisionsAnnotation)
	var known map[string]string
	if present != "" {
		known = m.Pod.Past(&m.Pod.Bounds).Revisions
	}
	changed := false
	size := len(`""`)
	entries := make([]podmeta.Entry, 0, len(m.Applied)+len(known))
	add := func(decision, revision string) {
		if length := len(decision) + len(revision) + len("@,"); size+length <= meta.MaxRevisionsBytes {
			size += length
			entries = append(entries, podmeta.Entry{Key: decision, Value: revision})
		}
	}
	var own map[string]bool
	for _, c := range m.Applied {
		revision := c.Revision()
		if c.ResourceVersion == "" || plan.IsIn(m.passed, c) { // in no cluster, and then its mark is empty too; or not applied
			continue
		}
		switch before, ok := known[c.Decision()]; {
		case m.Pod.Annotations.Has(c.MarkKey) && (c.AllowExclude() || !ok):
			revision = before
		case !ok || before != revision:
			changed = true
		}
		if revision == "" {
			continue
		}
		if known != nil {
			if own == nil {
				own = make(map[string]bool, len(m.Applied))
			}
			own[c.Decision()] = true
		}
		add(c.Decision(), revision)
	}
	if !changed || len(entries) == 0 {
		return nil
	}
	others := make([]string, 0, len(known))
	for decision := range known {
		if !own[decision] {
			others = append(others, decision)
		}
	}
	slices.Sort(others)
	for _, decision := range others {
		add(decision, known[decision])
	}
	slices.SortFunc(entries, func(a, b podmeta.Entry) int { return strings.Compare(a.Key, b.Key) })
	out := append(make([]byte, 0, size), '"')
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, e.Key...), '@'), e.Value...)
	}
	out = append(out, '"')
	if string(out[1:len(out)-1]) == present {
		return nil
	}
	return out
}

// annotationSize limits all annotations of a pod together.
func (m *Merge) annotationSize() {
	size := len(m.Pod.RawAnnotations) // at least as large as what it holds
	var by *plan.Plan
	for _, added := range m.entries {
		if added.field == annotationsField {
			size += len(added.entry.Key) + len(added.entry.Value)
			by = added.origin
		}
	}
	if by == nil || size <= meta.MaxAnnotations {
		return
	}
	m.Pod.Bounds.Did(len(m.Pod.RawAnnotations))
	size -= len(m.Pod.RawAnnotations)
	own := 0
	m.Pod.Annotations.Each(func(key, value []byte) {
		own += len(key) + len(value)
		if _, replaced := m.annotations[string(key)]; !replaced {
			size += len(key) + len(value)
		}
	})
	for _, c := range m.Applied {
		size += len(c.Mark()) + len(c.Version())
	}
	if own <= meta.MaxAnnotations && size > meta.MaxAnnotations { // one that is too large itself is left to the API server
		m.impossible(nil, by, fmt.Sprintf("the annotations of the pod are larger than %d KiB together", meta.MaxAnnotations>>10))
	}
}
