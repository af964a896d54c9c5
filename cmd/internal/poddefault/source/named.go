// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Connect implements [match.Source].
func (p *plans) Connect(namespace string, objects []*plan.Plan) error {
	return p.secrets.connect(namespace, objects)
}

// Fresh implements [match.Source]: an index holds what it was given.
func (x *Index) Fresh(context.Context, string) (match.Source, error) { return x, nil }

// Named implements [match.Source].
func (x *Index) Named(_ context.Context, namespace string, decisions []string) ([]*plan.Plan, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.named(x.namespaces, namespace, decisions)
}

func (p *plans) named(from map[string]*namespaceIndex, namespace string, decisions []string) (all []*plan.Plan, err error) {
	var cluster []*plan.Plan
	for _, decision := range decisions {
		name, ofCluster := strings.CutPrefix(decision, meta.ClusterDecision)
		if of := from[namespace]; !ofCluster && of != nil && of.objects[name].Plan != nil {
			all = append(all, of.objects[name].Plan)
		}
		if of := from[""]; ofCluster && of != nil && of.objects[name].Plan != nil {
			cluster = append(cluster, of.objects[name].Plan)
		}
	}
	if cluster, err = p.inNamespace(namespace, cluster); err != nil {
		return nil, err
	}
	all = append(all, cluster...)
	slices.SortFunc(all, plan.InOrder)
	return all, nil
}
