// SPDX-License-Identifier: Apache-2.0

package lint

import "github.com/sallyport-io/sallyport/internal/kube/selectors"

func workloadPDB() Rule {
	return Rule{
		ID: "workload-pdb", Group: groupWorkload, Severities: []Severity{Warning}, Source: fromGP,
		What: "A PodDisruptionBudget selects the pods.",
		Why:  "Otherwise draining nodes can evict all replicas at once.",
		Fix:  "Add a PodDisruptionBudget with minAvailable: 1.",
		check: func(c *checker) {
			for _, w := range c.servers() {
				if w.every { // evictions skip DaemonSets
					continue
				}
				covered := false
				for _, b := range c.budgets {
					covered = covered || b.Namespace == w.Namespace && b.value.Spec.Selector != nil && selectors.Selects(b.value.Spec.Selector, w.template.Labels)
				}
				if covered {
					continue
				}
				// Files with the workload would include the budget.
				if c.cluster && !c.complete["PodDisruptionBudget"] {
					c.skip(w.title(), "%s", c.outOfSight("PodDisruptionBudget"))
					continue
				}
				c.object(w.Object, Warning, "", "no PodDisruptionBudget selects %s", w.name())
			}
		},
	}
}
