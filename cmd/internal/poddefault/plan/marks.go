// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// ListedAmong returns the objects that a value of [meta.DecisionsAnnotation] lists.
func ListedAmong(listed string, objects ...[]*Plan) map[string]bool {
	if listed == "" {
		return nil
	}
	among := map[string]bool{}
	for _, group := range objects {
		for _, c := range group {
			among[c.decision] = false
		}
	}
	for name := range strings.SplitSeq(listed, ",") {
		if _, ok := among[name]; ok {
			among[name] = true
		}
	}
	return among
}

// PassedOver reports whether a pod without the mark of an object was created when the
// object had its current revision. It was then skipped, or left out because a volume is missing.
func (c *Plan) PassedOver(annotations map[string]string) bool {
	if !ListedAmong(annotations[meta.DecisionsAnnotation], []*Plan{c})[c.decision] {
		return false
	}
	if skipped, ok := annotations[c.SkipMark()]; ok {
		return strings.HasPrefix(skipped, c.SkipValue(""))
	}
	return len(c.Unpack().StrayMounts) > 0 // an object without them was in mode Audit, or could not work
}

// MarkIn returns the mark of the object in the annotations of a pod, and whether it is there.
func (c *Plan) MarkIn(annotations map[string]string) (meta.CarriedMark, bool) {
	value, marked := annotations[c.Mark()]
	if !marked {
		return meta.CarriedMark{}, false
	}
	m := c.MarkNow()
	m.Value, m.Revision = value, meta.RevisionsIn(annotations[meta.RevisionsAnnotation])[c.decision]
	return m, true
}

// CarriedBy returns the object in the revision of which a pod has the mark, if that is known, or else as it is; nil
// without a mark.
func (c *Plan) CarriedBy(annotations map[string]string) *Plan {
	if _, marked := annotations[c.Mark()]; !marked {
		return nil
	}
	if stable, _ := c.RolledOut(); stable != nil {
		if mark, _ := c.MarkIn(annotations); stable.Wrote(mark) && !c.Wrote(mark) {
			return stable
		}
	}
	return c
}

// MarkNow returns the mark that a pod would get from the object as it is.
func (c *Plan) MarkNow() meta.CarriedMark {
	return meta.CarriedMark{Annotation: c.Mark(), Value: c.ResourceVersion, Revision: c.revision, Cluster: c.Cluster(), Name: c.name}
}
