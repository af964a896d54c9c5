// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// A Verdict is what the webhook decided about a pod because of an object.
type Verdict string

// The verdicts. All but the first are about objects in mode Audit.
const (
	Refused      Verdict = "Refused"      // the pod was denied
	WouldApply   Verdict = "WouldApply"   // the object would have been applied
	WouldNot     Verdict = "WouldNot"     // it would have conflicted, or been left out
	NotEvaluated Verdict = "NotEvaluated" // the pod and its objects are too large to find out
)

// A Finding is a verdict with its reason. Its text contains no values.
type Finding struct {
	Object *plan.Plan
	// Others are the objects that the verdict depends on too.
	Others  []*plan.Plan
	Verdict Verdict
	Text    string
}

// DependsOn lists the objects that the verdict depends on, with their generations:
// "a@1,cluster/b@7".
func (f *Finding) DependsOn() string {
	return plan.Generations(append([]*plan.Plan{f.Object}, f.Others...))
}

// Refusals returns a finding for each object because of which the pod is denied.
func (cs *conflicts) Refusals() []Finding {
	var findings []Finding
	var texts [][]string // of each finding
	for _, c := range cs.Conflicts {
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Object.String() == c.object.String() })
		if i < 0 {
			if len(findings) == meta.MaxTold {
				continue
			}
			i = len(findings)
			findings, texts = append(findings, Finding{Object: c.object, Verdict: Refused}), append(texts, nil)
		}
		texts[i] = append(texts[i], c.text)
		findings[i].dependsOn(c.opponent)
	}
	for i := range findings {
		findings[i].Text = strings.Join(texts[i], "; ")
	}
	return findings
}

// dependsOn adds an object, nil for none, unless it is there.
func (f *Finding) dependsOn(other *plan.Plan) {
	if other != nil && other.String() != f.Object.String() && !slices.ContainsFunc(f.Others, func(c *plan.Plan) bool { return c.String() == other.String() }) {
		f.Others = append(f.Others, other)
	}
}

// RefusalsOf returns a finding for each object because of which the pod is denied.
func RefusalsOf(e *match.Excess) []Finding {
	objects := e.All
	if e.Object != nil {
		objects = []*plan.Plan{e.Object}
	}
	var findings []Finding
	for _, c := range objects[:min(len(objects), meta.MaxTold)] {
		findings = append(findings, Finding{Object: c, Verdict: Refused, Text: e.Text})
	}
	return findings
}

// Tally counts a pod for the revisions that are rolled out and that it gets.
func (m *Merge) Tally(chosen match.Match) {
	if m.Pod.DryRun {
		return
	}
	for _, c := range chosen.Objects {
		if c.Rollout == nil || c.Rollout.Current.Revision() != c.Revision() {
			continue
		}
		refused := slices.ContainsFunc(m.Conflicts, func(conflict conflict) bool {
			return conflict.object.String() == c.String() || conflict.opponent != nil && conflict.opponent.String() == c.String()
		})
		if refused || len(m.Conflicts) == 0 {
			c.Rollout.Tally.Add(chosen.Namespace+"/"+meta.OfPod(&m.Pod.Metadata, &m.Pod.Bounds).Unit, refused)
		}
	}
}

// Denial denies a pod with conflicts. It begins with the text that clients of
// Kubeflow's webhook look for.
func (m *Merge) Denial() *admission.Response {
	texts := make([]string, len(m.Conflicts))
	objects := slices.Clip(m.Applied)
	for i, c := range m.Conflicts {
		if texts[i] = c.text; !plan.IsIn(objects, c.object) {
			objects = append(objects, c.object)
		}
	}
	resp := admission.BadRequest(
		"conflict occurred while applying poddefaults: %s on pod: %s err: %s. %s",
		plan.Names(objects), m.Pod.Name, meta.Few(texts, "; ", m.moreConflicts), m.remedy())
	resp.AuditAnnotations = m.deniedBy()
	return resp.Warn(m.Told()...)
}
