// SPDX-License-Identifier: Apache-2.0

package lint

import "slices"

// hostPorts are ports that nodes use themselves.
var hostPorts = []int32{10250, 10255, 10256, 10249, 10248, 2379, 2380, 6443, 10257, 10259}

func workloadPort() Rule {
	return Rule{
		ID: "workload-port", Group: groupWorkload, Severities: []Severity{Info}, Source: "practice",
		What: "The container's port is 443, 8443 or 10250; with hostNetwork, it is not a port that the node itself uses.",
		Why:  "Control planes outside the cluster's network can reach only a few ports. On the host network, 10250 is the kubelet's.",
		Fix:  "Listen on 8443, or open a firewall for the port.",
		check: func(c *checker) {
			for _, b := range c.oncePerContainer() {
				_, port := b.targetPort()
				switch {
				case b.workload.template.Spec.HostNetwork && slices.Contains(hostPorts, port):
					c.fixing("Listen on another port, such as 8443, or leave the host's network.").object(b.workload.Object, Info, b.workload.path, "port %d collides with one that a node uses itself", port)
				case !slices.Contains([]int32{443, 8443, 10250}, port):
					c.object(b.workload.Object, Info, b.workload.path, "port %d may need a firewall rule on private clusters", port)
				}
			}
		},
	}
}
