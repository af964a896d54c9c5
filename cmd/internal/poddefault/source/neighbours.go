// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Neighbours returns the objects that apply to pods of a namespace, in order of
// application, or the ClusterPodDefaults for the empty namespace.
func (p *plans) Neighbours(namespace string) []*plan.Plan {
	all := p.All("")
	if namespace == "" {
		return all
	}
	p.mu.RLock()
	cluster, err := p.inNamespace(namespace, slices.Clone(all))
	p.mu.RUnlock()
	if err != nil { // its labels are not known yet
		cluster = nil
	}
	return append(cluster, p.All(namespace)...)
}

// Trouble returns nil: an index that nothing fills from a cluster needs no right.
func (x *Index) Trouble() error { return nil }

// Connections returns nil: it is for [Watcher.Connections] to say what the server lacks.
func (x *Index) Connections() error { return nil }
