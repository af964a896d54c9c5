// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"cmp"
	"strings"
)

// inOrder is the order of application: what comes later may override, so that
// ClusterPodDefaults come before the PodDefaults of the namespace, a lower priority
// before a higher one, and otherwise the name decides, as it did before there were
// priorities.
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
