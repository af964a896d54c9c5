// SPDX-License-Identifier: Apache-2.0

package lint

func workloadNodeGate() Rule {
	return Rule{
		ID: "workload-node-gate", Group: groupWorkload, Severities: []Severity{Warning}, Source: "practice",
		What: "The pods of a webhook for nodes can run on any node.",
		Why:  "If the webhook gates the very nodes that its server needs, the cluster cannot start.",
		Fix:  "Let the server run on any node, or use Ignore for nodes.",
		check: func(c *checker) {
			for _, b := range c.backendsOr() {
				spec := b.workload.template.Spec
				if len(spec.NodeSelector) == 0 && (spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil) {
					continue
				}
				if onlyOS(spec.NodeSelector) && spec.Affinity == nil {
					continue
				}
				for _, w := range b.webhooks {
					if w.failsClosed() && w.covers("", "nodes", "CREATE", "UPDATE") {
						c.object(b.workload.Object, Warning, b.workload.path, "%s runs only on nodes that webhook %s gates", b.workload.name(), w.Name)
						break
					}
				}
			}
		},
	}
}

// onlyOS reports whether a node selector only contains labels of all nodes of a kind.
func onlyOS(selector map[string]string) bool {
	for key := range selector {
		if key != "kubernetes.io/os" && key != "kubernetes.io/arch" {
			return false
		}
	}
	return true
}
