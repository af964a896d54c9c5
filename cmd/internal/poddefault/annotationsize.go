// SPDX-License-Identifier: Apache-2.0

package poddefault

import "fmt"

// annotationSize limits all annotations of a pod together.
func (m *merge) annotationSize() {
	size := len(m.pod.rawAnnotations) // at least as large as what it holds
	var by *Compiled
	for _, added := range m.entries {
		if added.field == annotationsField {
			size += len(added.entry.key) + len(added.entry.value)
			by = added.origin
		}
	}
	if by == nil || size <= longestAnnotation {
		return
	}
	m.pod.bounds.did(len(m.pod.rawAnnotations))
	size -= len(m.pod.rawAnnotations)
	own := 0
	m.pod.annotations.each(func(key, value []byte) {
		own += len(key) + len(value)
		if _, replaced := m.annotations[string(key)]; !replaced {
			size += len(key) + len(value)
		}
	})
	for _, c := range m.applied {
		size += len(c.markOf()) + len(c.version)
	}
	if own <= longestAnnotation && size > longestAnnotation { // one that is too large itself is left to the API server
		m.impossible(nil, by, fmt.Sprintf("the annotations of the pod are larger than %d KiB together", longestAnnotation>>10))
	}
}
