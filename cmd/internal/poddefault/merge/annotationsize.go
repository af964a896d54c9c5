// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

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
	if by == nil || size <= longestAnnotation {
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
	if own <= longestAnnotation && size > longestAnnotation { // one that is too large itself is left to the API server
		m.impossible(nil, by, fmt.Sprintf("the annotations of the pod are larger than %d KiB together", longestAnnotation>>10))
	}
}
