// SPDX-License-Identifier: Apache-2.0

// Package compare says whether two plans conflict on pods that both select, and describes it for
// their authors.
//
// In go two plans; out come the places that both set differently. It looks at no pod: what pods
// they are is asked of the selectors alone.
package compare

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Overlap returns the places of a pod where two PodDefaults of one namespace conflict
// if both select it, such as "env HTTP_PROXY", sorted. There are none if no pod can
// have both, if they are alternatives (spec.exclusiveGroup), or if one can never work.
// Priorities, policies and modes do not matter: they only decide what a conflict leads
// to.
func Overlap(a, b *kubeflowv1alpha1.PodDefault) []string {
	return overlap(plan.Compile(a), plan.Compile(b))
}

// OverlapWithCluster is [Overlap] for an object of each kind, in the namespaces that
// the ClusterPodDefault selects.
func OverlapWithCluster(a *kubeflowv1alpha1.PodDefault, b *sallyportv1alpha1.ClusterPodDefault) []string {
	return overlap(plan.CompileCluster(b), plan.Compile(a))
}

// OverlapOfCluster is [Overlap] for two ClusterPodDefaults, in the namespaces that both
// select.
func OverlapOfCluster(a, b *sallyportv1alpha1.ClusterPodDefault) []string {
	x, y := plan.CompileCluster(a), plan.CompileCluster(b)
	if x.NamespaceSelector() != nil && y.NamespaceSelector() != nil && unsatisfiable(demandsOf(x.NamespaceSelector(), nil), demandsOf(y.NamespaceSelector(), nil)) {
		return nil
	}
	return overlap(x, y)
}

func overlap(a, b *plan.Plan) []string {
	if a.Problem() != nil || b.Problem() != nil || a.Alternative(b) || Exclusive(a, b) {
		return nil
	}
	places, within := sets.New[string](), meta.NewBudget(context.Background())
	for _, place := range Disagreements(&within, a.Unpack(), b.Unpack()) {
		places.Insert(place)
	}
	return slices.Sorted(maps.Keys(places))
}

// OfPlans is [Overlap] for compiled objects of either kind, for callers that
// compare many. It ignores namespaces.
func OfPlans(a, b *plan.Plan) []string { return overlap(a, b) }
