// SPDX-License-Identifier: Apache-2.0

package poddefault

// auditAll folds all objects, including those in mode Audit, into another copy of the pod,
// and warns of the effects of the latter. It returns a finding for each of them.
func (m *merge) auditAll(f *folding, md *metadata, b *bounds, chosen match) (findings []Finding) {
	enforced := chosen
	enforced.objects, enforced.audits = nil, false
	for _, c := range chosen.objects {
		if c.audit {
			c = c.enforced()
		}
		enforced.objects = append(enforced.objects, c)
	}
	trial, err := f.settle(md, b, enforced)
	if err != nil {
		m.warn("%d PodDefaults are in mode Audit and were not applied: whether they could be was not found out, they are too large", len(m.audited))
		for _, c := range m.audited[:min(len(m.audited), maxTold)] {
			findings = append(findings, Finding{Object: c, Verdict: NotEvaluated, Text: "it is in mode Audit and was not applied: whether it could be was not found out, the pod and its PodDefaults are too large"})
		}
		return findings
	}
	conflicts := trial.conflicts
	for _, s := range trial.skipped {
		if s.conflict != nil {
			conflicts = append(conflicts, *s.conflict)
		}
	}
	for _, c := range m.audited {
		f := Finding{Object: c, Verdict: WouldApply}
		would := "it would have been applied"
		for _, conflict := range conflicts {
			if conflict.object.title == c.title || conflict.opponent != nil && conflict.opponent.title == c.title {
				f.Verdict, would = WouldNot, "there would have been a conflict: "+conflict.text
				f.dependsOn(conflict.object)
				f.dependsOn(conflict.opponent)
				break
			}
		}
		if isIn(trial.invalid, c) {
			f.Verdict, would = WouldNot, "it would have been left out: a volume that it mounts exists neither there nor in the pod"
		}
		m.warn("%s is in mode Audit and was not applied: %s", c, would)
		f.Text = "it is in mode Audit and was not applied: " + would
		findings = append(findings, f)
	}
	return findings
}
