// SPDX-License-Identifier: Apache-2.0

package poddefault

import "slices"

// Neighbours are the objects that count for pods of a namespace, in the order of their
// application; for the namespace without a name they are the ClusterPodDefaults.
func (x *Index) Neighbours(namespace string) []*Compiled {
	all := x.All("")
	if namespace == "" {
		return all
	}
	x.mu.RLock()
	cluster, err := x.inNamespace(namespace, slices.Clone(all))
	x.mu.RUnlock()
	if err != nil { // its labels are not known yet
		cluster = nil
	}
	return append(cluster, x.All(namespace)...)
}

// Neighbours is that of the index.
func (w *Watcher) Neighbours(namespace string) []*Compiled { return w.index.Neighbours(namespace) }
