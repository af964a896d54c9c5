// SPDX-License-Identifier: Apache-2.0

package lint

import "strings"

func workloadPriority() Rule {
	return Rule{
		ID: "workload-priority", Group: groupWorkload, Severities: []Severity{Info}, Source: "practice",
		What: "The pods have priorityClassName system-cluster-critical.",
		Why:  "Otherwise preemption may remove the server first when nodes are full.",
		Fix:  "Set priorityClassName: system-cluster-critical, if a quota allows it.",
		check: func(c *checker) {
			for _, w := range c.servers() {
				if !strings.HasPrefix(w.template.Spec.PriorityClassName, "system-") {
					c.object(w.Object, Info, w.path, "%s has no system priority class", w.name())
				}
			}
		},
	}
}
