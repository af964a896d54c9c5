// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// AuditAll folds all objects, including those in mode Audit, into another copy of the pod,
// and warns of the effects of the latter. It returns a finding for each of them.
func (m *Merge) AuditAll(f *Folding, md *meta.Metadata, b *meta.Budget, chosen match.Match) (findings []Finding) {
	enforced := chosen
	enforced.Objects, enforced.Audits = nil, false
	for _, c := range chosen.Objects {
		if c.Audit {
			c = c.Enforced()
		}
		enforced.Objects = append(enforced.Objects, c)
	}
	trial, err := f.Resolve(md, b, enforced)
	if err != nil {
		m.warn("%d PodDefaults are in mode Audit and were not applied: whether they could be was not found out, they are too large", len(m.Audited))
		for _, c := range m.Audited[:min(len(m.Audited), meta.MaxTold)] {
			findings = append(findings, Finding{Object: c, Verdict: NotEvaluated, Text: "it is in mode Audit and was not applied: whether it could be was not found out, the pod and its PodDefaults are too large"})
		}
		return findings
	}
	conflicts := trial.Conflicts
	for _, s := range trial.skipped {
		if s.conflict != nil {
			conflicts = append(conflicts, *s.conflict)
		}
	}
	for _, c := range m.Audited {
		f := Finding{Object: c, Verdict: WouldApply}
		would := "it would have been applied"
		for _, conflict := range conflicts {
			if conflict.object.String() == c.String() || conflict.opponent != nil && conflict.opponent.String() == c.String() {
				f.Verdict, would = WouldNot, "there would have been a conflict: "+conflict.text
				f.dependsOn(conflict.object)
				f.dependsOn(conflict.opponent)
				break
			}
		}
		if plan.IsIn(trial.invalid, c) {
			f.Verdict, would = WouldNot, "it would have been left out: a volume that it mounts exists neither there nor in the pod"
		}
		m.warn("%s is in mode Audit and was not applied: %s", c, would)
		f.Text = "it is in mode Audit and was not applied: " + would
		findings = append(findings, f)
	}
	return findings
}
