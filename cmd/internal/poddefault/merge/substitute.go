// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// fill returns the object with placeholders replaced by the values that the pod has so far,
// or nil if it lacks one. A missing or empty label is a conflict, because an empty subPath would mean the whole volume. So
// is an invalid label value, because the API server has not validated the pod yet.
func (ad *adder) fill(c *plan.Plan) *plan.Plan {
	ok := true
	filled := ad.filled(c, func(path *field.Path, what string) {
		ok = false
		ad.conflict(conflict{object: c, alone: true}, "%s: %s needs %s, which the pod does not have, or which is empty or illegal", c, path, what)
	})
	if !ok {
		ad.unfilled = append(ad.unfilled, c)
		return nil
	}
	return filled
}

// filled is fill, which calls missing for each placeholder without a value.
func (md *metadata) filled(c *plan.Plan, missing func(path *field.Path, what string)) *plan.Plan {
	md.pod.Bounds.Did(c.Size)
	spec := c.Template.DeepCopy()
	isValue := meta.Remembering(validation.IsValidLabelValue)
	meta.Texts(spec, field.NewPath("spec"), func(path *field.Path, text *string) {
		found, _ := meta.PlaceholdersIn(*text)
		if len(found) == 0 {
			return
		}
		var out strings.Builder
		end := 0
		for _, p := range found {
			value, what := md.namespace, "the namespace"
			if p.Label != "" {
				value, _, _ = md.label(p.Label)
				what = "the label " + p.Label
			}
			if value == "" || !isValue(value) {
				missing(path, what)
			}
			out.WriteString((*text)[end:p.Start])
			out.WriteString(value)
			end = p.End
		}
		out.WriteString((*text)[end:])
		*text = out.String()
	})
	return c.FilledWith(spec)
}
