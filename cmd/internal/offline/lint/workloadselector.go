// SPDX-License-Identifier: Apache-2.0

package lint

func workloadSelector() Rule {
	return Rule{
		ID: "workload-selector", Group: groupWorkload, Severities: []Severity{Warning}, Source: "practice",
		What: "The Service of webhooks selects only serving pods.",
		Why:  "Pods that do not listen on its port refuse some of the connections.",
		Fix:  "Give the serving pods a label of their own, and select it.",
		check: func(c *checker) {
			backends := c.backendsOr()
			for _, b := range backends {
				container, port := b.targetPort()
				if container != nil {
					continue
				}
				// Another workload behind the Service may listen on the port.
				for _, other := range backends {
					if serving, n := other.targetPort(); other.service == b.service && other.port == b.port && serving != nil {
						if port == 0 {
							port = n
						}
						c.object(b.service.Object, Warning, "/spec/selector", "service %s also selects %s, which does not listen on %d", b.service.Name, b.workload.name(), port)
						break
					}
				}
			}
		},
	}
}
