// SPDX-License-Identifier: Apache-2.0

package poddefault

import "slices"

// auditAll merges all objects, including those in mode Audit, into another copy of the
// pod, and warns of the effects of the latter. It returns a finding for each of them.
func (m *merge) auditAll(p *pod, chosen choice, skipped []skip) (findings []Finding) {
	enforced := choice{labels: chosen.labels, added: chosen.added, namespace: chosen.namespace}
	for _, c := range chosen.objects {
		if c.audit {
			c = &Compiled{identity: c.identity, additions: c.additions}
			c.audit = false
		}
		enforced.objects = append(enforced.objects, c)
	}
	enforced.added = slices.Clone(chosen.added)
	set := map[string]bool{}
	for _, e := range enforced.added {
		set[e.entry.key] = true
	}
	for _, c := range m.audited {
		for _, l := range c.labels {
			if !set[l.key] && !p.metadata.labels.Has(l.key) {
				set[l.key] = true
				enforced.added = append(enforced.added, setEntry{"labels", l, c})
			}
		}
	}
	trial := mergeAll(p, enforced, skipped, m.settings)
	if trial.pod.bounds.spent() {
		m.warn("%d PodDefaults are in mode Audit and were not applied: whether they could be was not found out, they are too large", len(m.audited))
		for _, c := range m.audited[:min(len(m.audited), maxTold)] {
			findings = append(findings, Finding{Object: c, Verdict: NotEvaluated, Text: "it is in mode Audit and was not applied: whether it could be was not found out, the pod and its PodDefaults are too large"})
		}
		return findings
	}
	for _, c := range m.audited {
		f := Finding{Object: c, Verdict: WouldApply}
		would := "it would have been applied"
		for _, conflict := range trial.conflicts {
			if conflict.object.title == c.title || conflict.opponent != nil && conflict.opponent.title == c.title {
				f.Verdict, would = WouldNot, "there would have been a conflict: "+conflict.text
				f.dependsOn(conflict.object)
				f.dependsOn(conflict.opponent)
				break
			}
		}
		if slices.ContainsFunc(trial.invalid, func(other *Compiled) bool { return other.title == c.title }) {
			f.Verdict, would = WouldNot, "it would have been left out: a volume that it mounts exists neither there nor in the pod"
		}
		m.warn("%s is in mode Audit and was not applied: %s", c, would)
		f.Text = "it is in mode Audit and was not applied: " + would
		findings = append(findings, f)
	}
	return findings
}
