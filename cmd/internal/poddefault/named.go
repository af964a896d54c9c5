// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// Connect implements [Source].
func (x *Index) Connect(namespace string, objects []*Compiled) error {
	return x.secrets.connect(namespace, objects)
}

// Fresh implements [Source]: an index holds what it was given.
func (x *Index) Fresh(context.Context, string) (Source, error) { return x, nil }

// Named implements [Source].
func (x *Index) Named(_ context.Context, namespace string, decisions []string) ([]*Compiled, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.named(x.namespaces, namespace, decisions)
}

func (x *Index) named(from map[string]*namespaceIndex, namespace string, decisions []string) (all []*Compiled, err error) {
	var cluster []*Compiled
	for _, decision := range decisions {
		name, ofCluster := strings.CutPrefix(decision, meta.ClusterDecision)
		if of := from[namespace]; !ofCluster && of != nil && of.objects[name].Compiled != nil {
			all = append(all, of.objects[name].Compiled)
		}
		if of := from[""]; ofCluster && of != nil && of.objects[name].Compiled != nil {
			cluster = append(cluster, of.objects[name].Compiled)
		}
	}
	if cluster, err = x.inNamespace(namespace, cluster); err != nil {
		return nil, err
	}
	all = append(all, cluster...)
	slices.SortFunc(all, inOrder)
	return all, nil
}
