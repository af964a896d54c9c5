// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"testing"

	"sigs.k8s.io/yaml"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

func parseClusterPodDefault(t testing.TB, data string) *sallyportv1alpha1.ClusterPodDefault {
	t.Helper()
	cpd := &sallyportv1alpha1.ClusterPodDefault{}
	if err := yaml.UnmarshalStrict([]byte(data), cpd); err != nil {
		t.Fatal(err)
	}
	return cpd
}

func TestNamespacesAreWaitedForIfTheirLabelsCount(t *testing.T) {
	index := source.NewIndex()
	index.Strict = true
	selected := func() (string, error) {
		objects, err := index.Select(t.Context(), podtest.Namespace, podmeta.Labels{})
		return plan.Names(objects), err
	}
	index.Set(plan.CompileCluster(parseClusterPodDefault(t, `{metadata: {name: all}, spec: {selector: {}}}`)))
	if got, err := selected(); got != "cluster/all" || err != nil {
		t.Errorf("what asks for no labels waits: %s, %v", got, err)
	}
	index.Set(plan.CompileCluster(parseClusterPodDefault(t, `{metadata: {name: some}, spec: {selector: {}, namespaceSelector: {matchLabels: {team: a}}}}`)))
	if got, err := selected(); err == nil {
		t.Errorf("an unknown namespace was decided on: %s", got)
	}
	index.SetNamespace(podtest.Namespace, map[string]string{"team": "b"})
	if got, err := selected(); got != "cluster/all" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	index.SetNamespace(podtest.Namespace, map[string]string{"team": "a"})
	if got, err := selected(); got != "cluster/all,cluster/some" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	index.DeleteNamespace(podtest.Namespace)
	if _, err := selected(); err == nil {
		t.Error("a namespace that is gone is still known")
	}
}

func TestTheTwoKindsAreReplacedEachByItself(t *testing.T) {
	w := newGoneWorld(t)
	own := podtest.PodDefaults(t, []byte("metadata: {name: own}\nspec: {selector: {}}"))[0]
	w.PodDefaults.Replace([]*plan.Plan{plan.Compile(own)})
	w.ClusterPodDefaults.Replace([]*plan.Plan{plan.CompileCluster(parseClusterPodDefault(t, `{metadata: {name: all}, spec: {selector: {}}}`))})
	w.PodDefaults.Replace([]*plan.Plan{plan.Compile(own)})
	if got := plan.Names(w.All(podtest.Namespace)) + " " + plan.Names(w.All("")); got != "own cluster/all" {
		t.Errorf("got %s", got)
	}
	w.ClusterPodDefaults.Replace(nil)
	if w.Len() != 1 {
		t.Errorf("%d objects are left", w.Len())
	}
}

func TestClusterPodDefaultWithABrokenNamespaceSelectorSelectsNone(t *testing.T) {
	c := plan.CompileCluster(parseClusterPodDefault(t, `{metadata: {name: x}, spec: {selector: {}, namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}}}`))
	if c.Problem() == nil {
		t.Error("no problem")
	}
	index := source.NewIndex()
	index.Set(c)
	if objects, err := index.Select(t.Context(), podtest.Namespace, podmeta.Labels{}); err != nil || len(objects) > 0 {
		t.Errorf("got %v, %v", objects, err)
	}
}
