// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Known reports whether there is an object or a namespace, for [counts.NewCounts]. Before all are read, it
// takes everything as known.
func (w *Watcher) Known(namespace, decision string) bool {
	if w.Ready() != nil {
		return true
	}
	if w.Namespaces.Get(types.NamespacedName{Name: namespace}) == nil {
		return false
	}
	if name, ofCluster := strings.CutPrefix(decision, meta.ClusterDecision); ofCluster {
		return w.ClusterPodDefaults.Get(types.NamespacedName{Name: name}) != nil
	}
	return decision == "" || w.PodDefaults.Get(types.NamespacedName{Namespace: namespace, Name: decision}) != nil
}
