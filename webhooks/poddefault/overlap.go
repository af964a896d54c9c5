// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Overlap names the places of a pod on which two PodDefaults of one namespace will
// disagree if a pod is selected by both: "env HTTP_PROXY", sorted. There are none if
// no pod can be selected by both, or one of the objects can never work. Priorities,
// policies and modes do not count: they say what a disagreement leads to.
func Overlap(a, b *kubeflowv1alpha1.PodDefault) []string {
	return overlap(Compile(a), Compile(b))
}

// OverlapWithCluster is [Overlap] for an object of each kind. Namespaces do not
// count: it is for those that the ClusterPodDefault selects.
func OverlapWithCluster(a *kubeflowv1alpha1.PodDefault, b *sallyportv1alpha1.ClusterPodDefault) []string {
	return overlap(CompileCluster(b), Compile(a))
}

// OverlapOfCluster is [Overlap] for two ClusterPodDefaults, in the namespaces that both
// select.
func OverlapOfCluster(a, b *sallyportv1alpha1.ClusterPodDefault) []string {
	x, y := CompileCluster(a), CompileCluster(b)
	if x.namespaces != nil && y.namespaces != nil && exclusive(x.namespaces, y.namespaces) {
		return nil
	}
	return overlap(x, y)
}

func overlap(a, b *Compiled) []string {
	if a.problem != nil || b.problem != nil || exclusive(a.selector, b.selector) {
		return nil
	}
	places := sets.New[string]()
	for _, place := range a.disagreements(b) {
		places.Insert(place)
	}
	return slices.Sorted(maps.Keys(places))
}

// exclusive tells whether it is certain that no labels match both selectors: they want
// different values of one label, or one wants it and the other does not. It may say
// no of selectors that exclude each other in more involved ways.
func exclusive(a, b labels.Selector) bool {
	requirements, _ := a.Requirements()
	others, _ := b.Requirements()
	for _, x := range requirements {
		for _, y := range others {
			if x.Key() == y.Key() && (contradict(x, y) || contradict(y, x)) {
				return true
			}
		}
	}
	return false
}

func contradict(x, y labels.Requirement) bool {
	wants := func(r labels.Requirement) bool {
		return r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals
	}
	switch {
	case y.Operator() == selection.DoesNotExist:
		return wants(x) || x.Operator() == selection.Exists
	case wants(x) && wants(y):
		return x.Values().Intersection(y.Values()).Len() == 0
	case wants(x) && (y.Operator() == selection.NotIn || y.Operator() == selection.NotEquals):
		return y.Values().IsSuperset(x.Values())
	}
	return false
}
