// SPDX-License-Identifier: Apache-2.0

package lint

func workloadResources() Rule {
	return Rule{
		ID: "workload-resources", Group: groupWorkload, Severities: []Severity{Warning, Info}, Source: "practice",
		What: "The container requests CPU and memory, and has no CPU limit.",
		Why:  "Without requests, the container is the first to starve. A CPU limit throttles it, which adds latency to the API.",
		Fix:  "Set resources.requests; omit limits.cpu.",
		check: func(c *checker) {
			for _, b := range c.oncePerContainer() {
				container, _ := b.targetPort()
				resources := container.Resources
				if resources.Requests.Cpu().IsZero() && resources.Limits.Cpu().IsZero() || resources.Requests.Memory().IsZero() && resources.Limits.Memory().IsZero() {
					c.object(b.workload.Object, Warning, b.workload.path, "%s has no requests", container.Name)
				}
				if !resources.Limits.Cpu().IsZero() {
					c.object(b.workload.Object, Info, b.workload.path, "CPU limit on %s throttles admission", container.Name)
				}
			}
		},
	}
}
