// SPDX-License-Identifier: Apache-2.0

package lint

func workloadReplicas() Rule {
	return Rule{
		ID: "workload-replicas", Group: groupWorkload, Severities: []Severity{Warning}, Source: fromGP,
		What: "The server of webhooks has at least two replicas.",
		Why:  "With one replica, every restart is an outage.",
		Fix:  "Set replicas: 2 or more; with an autoscaler, minReplicas.",
		check: func(c *checker) {
			for _, w := range c.servers() {
				n, by, pointer := w.fewest()
				switch {
				case w.every || n >= 2:
				case w.scaler != nil:
					c.object(by, Warning, pointer, "%s may have %d replica", w.name(), n)
				default:
					c.object(by, Warning, pointer, "%s has %d replica", w.name(), n)
				}
			}
		},
	}
}

// servers returns the workloads of all servers without duplicates, and reports webhooks
// with an unknown server as skipped.
func (c *checker) servers() []*workload {
	var out []*workload
	seen := map[*workload]bool{}
	for _, b := range c.backendsOr() {
		if !seen[b.workload] {
			seen[b.workload] = true
			out = append(out, b.workload)
		}
	}
	return out
}
