// SPDX-License-Identifier: Apache-2.0

package lint

func workloadSpread() Rule {
	return Rule{
		ID: "workload-spread", Group: groupWorkload, Severities: []Severity{Warning}, Source: fromGP,
		What: "The pods have topology spread constraints or pod anti-affinity.",
		Why:  "Otherwise the loss of one node can take all replicas with it.",
		Fix:  "Add a topologySpreadConstraint over kubernetes.io/hostname.",
		check: func(c *checker) {
			for _, w := range c.servers() {
				if !w.every && !w.spread() {
					c.object(w.Object, Warning, w.path, "%s has no topology spread", w.name())
				}
			}
		},
	}
}

// spread reports whether anything keeps replicas apart.
func (w *workload) spread() bool {
	spec := w.template.Spec
	return len(spec.TopologySpreadConstraints) > 0 || spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil
}
