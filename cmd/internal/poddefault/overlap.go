// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Overlap returns the places of a pod where two PodDefaults of one namespace conflict
// if both select it, such as "env HTTP_PROXY", sorted. There are none if no pod can
// have both, if they are alternatives (spec.exclusiveGroup), or if one can never work.
// Priorities, policies and modes do not matter: they only decide what a conflict leads
// to.
func Overlap(a, b *kubeflowv1alpha1.PodDefault) []string {
	return overlap(Compile(a), Compile(b))
}

// OverlapWithCluster is [Overlap] for an object of each kind, in the namespaces that
// the ClusterPodDefault selects.
func OverlapWithCluster(a *kubeflowv1alpha1.PodDefault, b *sallyportv1alpha1.ClusterPodDefault) []string {
	return overlap(CompileCluster(b), Compile(a))
}

// OverlapOfCluster is [Overlap] for two ClusterPodDefaults, in the namespaces that both
// select.
func OverlapOfCluster(a, b *sallyportv1alpha1.ClusterPodDefault) []string {
	x, y := CompileCluster(a), CompileCluster(b)
	if x.namespaces != nil && y.namespaces != nil && unsatisfiable(demandsOf(x.namespaces, nil), demandsOf(y.namespaces, nil)) {
		return nil
	}
	return overlap(x, y)
}

func overlap(a, b *Compiled) []string {
	if a.problem != nil || b.problem != nil || a.alternative(b) || exclusive(a, b) {
		return nil
	}
	places, within := sets.New[string](), newBounds(context.Background())
	for _, place := range disagreements(&within, a.unpack(), b.unpack()) {
		places.Insert(place)
	}
	return slices.Sorted(maps.Keys(places))
}
