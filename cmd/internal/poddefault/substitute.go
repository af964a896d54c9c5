// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// fill returns the object with placeholders replaced by the pod's values. A missing or
// empty label is a conflict, because an empty subPath would mean the whole volume. So
// is an invalid label value, because the API server has not validated the pod yet.
func (m *merge) fill(c *Compiled, chosen choice) *Compiled {
	m.pod.bounds.did(c.size)
	spec := c.template.DeepCopy()
	ok, isValue := true, meta.Remembering(validation.IsValidLabelValue)
	meta.Texts(spec, field.NewPath("spec"), func(path *field.Path, text *string) {
		found, _ := meta.PlaceholdersIn(*text)
		if len(found) == 0 {
			return
		}
		var out strings.Builder
		end := 0
		for _, p := range found {
			value, what := chosen.namespace, "the namespace"
			if p.Label != "" {
				value, what = chosen.labels.Get(p.Label), "the label "+p.Label
			}
			if value == "" || !isValue(value) {
				ok = false
				m.conflict(conflict{object: c, alone: true}, "%s: %s needs %s, which the pod does not have, or which is empty or illegal", c, path, what)
			}
			out.WriteString((*text)[end:p.Start])
			out.WriteString(value)
			end = p.End
		}
		out.WriteString((*text)[end:])
		*text = out.String()
	})
	if !ok {
		return c
	}
	filled := &Compiled{identity: c.identity, additions: &additions{mark: c.mark, marks: c.marks, annotations: c.annotations, strayMounts: c.strayMounts}}
	filled.compileSpec(spec)
	return filled
}
