// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// SkipMark returns the annotation that says why the object was skipped.
func (r *Reference) SkipMark() string {
	if r.Cluster() {
		return meta.ClusterSkipMark(r.name)
	}
	return meta.SkipMark(r.name)
}

// SkipValue returns the value of that annotation.
func (r *Reference) SkipValue(reason string) string {
	return "generation " + strconv.FormatInt(r.generation, 10) + ": " + reason
}

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

// Adds reports whether the object adds this label to pods.
func (h *Head) Adds(key, value string) bool {
	return slices.Contains(h.Labels, meta.Entry{Key: key, Value: value})
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

// ChangedAt returns when the object was last written, ignoring its status, to the second.
func (r *Reference) ChangedAt() time.Time { return time.Unix(r.changed, 0) }

func changedAt(meta *metav1.ObjectMeta) int64 {
	at := meta.CreationTimestamp.Time
	for _, m := range meta.ManagedFields {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at.Unix()
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

// MarkNow returns the mark that a pod would get from the object as it is.
func (c *Plan) MarkNow() meta.CarriedMark {
	return meta.CarriedMark{Annotation: c.Mark(), Value: c.ResourceVersion, Revision: c.revision, Cluster: c.Cluster(), Name: c.name}
}
