// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"cmp"
	"strings"
)

// inOrder compares by order of application. Later objects may override earlier ones, so
// ClusterPodDefaults come before the PodDefaults of the namespace, and lower priorities
// before higher ones. Otherwise names decide, as in Kubeflow's webhook.
func inOrder(a, b *Compiled) int {
	if a.Cluster() != b.Cluster() {
		if a.Cluster() {
			return -1
		}
		return 1
	}
	if a.priority != b.priority {
		return cmp.Compare(a.priority, b.priority)
	}
	return strings.Compare(a.name, b.name)
}
