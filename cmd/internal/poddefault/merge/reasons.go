// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Reasons returns what became of each object that selects the pod, or would: of a match, and of the merge of its
// objects, nil if it has none.
func (m *Merge) Reasons(of match.Match) []match.Reason {
	reasons := of.Left()
	if m == nil {
		return reasons
	}
	for _, c := range of.Objects {
		r := match.Reason{Object: c, Why: match.Applied}
		skipped := slices.IndexFunc(m.skipped, func(s skip) bool { return s.object.String() == c.String() })
		switch {
		case plan.IsIn(m.invalid, c):
			r.Why, r.Text = match.Unusable, unusableBecause(c)
		case plan.IsIn(m.Audited, c):
			r.Why = match.Audited
		case skipped >= 0:
			r.Why, r.Text = match.Skipped, m.skipped[skipped].reason
		case m.Denies():
			r.Why, r.Text = match.Refused, m.textOf(c)
		case plan.IsIn(m.passed, c):
			r.Why = match.PassedOver
		}
		if !of.BySent(c) {
			r.Via = m.selectedVia(c)
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// textOf returns the conflicts that an object has with the pod or with objects before it.
func (cs *conflicts) textOf(c *plan.Plan) string {
	var texts []string
	for _, conflict := range cs.Conflicts {
		if conflict.object.String() == c.String() {
			texts = append(texts, conflict.text)
		}
	}
	return strings.Join(texts, "; ")
}

// unusableBecause says why an object cannot work in the pod.
func unusableBecause(c *plan.Plan) string {
	if c.Problem() != nil {
		return strings.ReplaceAll(c.Problem().Error(), "\n", "; ")
	}
	return "a volume that it mounts exists neither there nor in the pod"
}

// selectedVia returns the labels by which an object selects the pod that it was not sent with.
func (md *metadata) selectedVia(c *plan.Plan) (via []match.Added) {
	requirements, _ := c.Selector().Requirements()
	for _, e := range md.entries {
		if e.field == labelsField && slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == e.entry.Key }) {
			via = append(via, match.Added{Key: e.entry.Key, By: e.origin})
		}
	}
	return via
}
