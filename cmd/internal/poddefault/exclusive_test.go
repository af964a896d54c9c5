// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/test/cases"
)

func TestObjectsThatNoPodCanHaveBothAreNotInConflict(t *testing.T) {
	object := func(name, spec string) *plan.Plan {
		return plan.Compile(podtest.PodDefaults(t, []byte("metadata: {name: "+name+"}\nspec: {env: [{name: A, value: "+name+"}], "+spec+"}"))[0])
	}
	for name, test := range map[string]struct {
		a, b     string
		conflict bool
	}{
		"some value and no value": {
			`selector: {matchExpressions: [{key: x, operator: Exists}]}`, `selector: {matchExpressions: [{key: x, operator: DoesNotExist}]}`, false},
		"sets of values without a common one": {
			`selector: {matchExpressions: [{key: x, operator: In, values: [a, b]}]}`, `selector: {matchExpressions: [{key: x, operator: In, values: [c]}]}`, false},
		"sets of values of which the common one is left out": {
			`selector: {matchExpressions: [{key: x, operator: In, values: [a, b]}, {key: x, operator: NotIn, values: [a]}]}`,
			`selector: {matchExpressions: [{key: x, operator: In, values: [a, c]}]}`, false},
		"values that are left out one by one": {
			`selector: {matchExpressions: [{key: x, operator: In, values: [a, b]}, {key: x, operator: NotIn, values: [a]}]}`,
			`selector: {matchExpressions: [{key: x, operator: NotIn, values: [b]}]}`, false},
		"values that are left out where the label may be missing": {
			`selector: {matchExpressions: [{key: x, operator: NotIn, values: [a, b]}]}`, `selector: {matchExpressions: [{key: x, operator: DoesNotExist}]}`, true},
		"one that no pod has": {
			`selector: {matchLabels: {x: a}, matchExpressions: [{key: x, operator: NotIn, values: [a]}]}`, `selector: {}`, false},
		"a label that one adds has another value":                   {`selector: {}, labels: {x: a}`, `selector: {matchLabels: {x: b}}`, false},
		"a label that one adds is one of those wanted":              {`selector: {}, labels: {x: a}`, `selector: {matchLabels: {x: a}}`, true},
		"a label that one adds is missing before":                   {`selector: {}, labels: {x: a}`, `selector: {matchExpressions: [{key: x, operator: DoesNotExist}]}`, true},
		"a label that one adds is left out by the other":            {`selector: {}, labels: {x: a}`, `selector: {matchExpressions: [{key: x, operator: NotIn, values: [a]}]}`, true},
		"any other value of a label that one adds":                  {`selector: {}, labels: {x: a}`, `selector: {matchExpressions: [{key: x, operator: Exists}, {key: x, operator: NotIn, values: [a]}]}`, false},
		"a label that one would add unless the pod has another one": {`selector: {}, labels: {x: a}, conflictPolicy: KeepPod`, `selector: {matchLabels: {x: b}}`, true},
		"alternatives of one group":                                 {`selector: {}, exclusiveGroup: gpu`, `selector: {}, exclusiveGroup: gpu`, false},
		"alternatives of two groups":                                {`selector: {}, exclusiveGroup: gpu`, `selector: {}, exclusiveGroup: cpu`, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := object("a", test.a), object("b", test.b)
			if got := len(compare.OfPlans(a, b)) > 0; got != test.conflict {
				t.Errorf("in conflict: %v, want %v", got, test.conflict)
			}
			if got := len(compare.OfPlans(b, a)) > 0; got != test.conflict {
				t.Errorf("the other way round: in conflict: %v, want %v", got, test.conflict)
			}
		})
	}
}

// TestExclusiveObjectsAreNeverAppliedTogether checks the result for two objects against
// every pod with labels of these keys and values.
func TestExclusiveObjectsAreNeverAppliedTogether(t *testing.T) {
	values := []string{"", "1", "2", "3"} // none: no label
	drawSelector := func(rt *rapid.T) metav1.LabelSelector {
		var s metav1.LabelSelector
		for range rapid.IntRange(0, 3).Draw(rt, "requirements") {
			r := metav1.LabelSelectorRequirement{
				Key: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "key"),
				Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
					metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
				}).Draw(rt, "operator"),
			}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = rapid.SliceOfNDistinct(rapid.SampledFrom(values[1:]), 1, 2, rapid.ID[string]).Draw(rt, "values")
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		return s
	}
	rapid.Check(t, func(rt *rapid.T) {
		var pds []*kubeflowv1alpha1.PodDefault
		adds := false
		for _, name := range []string{"a", "b"} {
			pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: podtest.Namespace, Name: name, ResourceVersion: "1"}}
			pd.Spec.Selector, pd.Spec.ConflictPolicy = drawSelector(rt), drawPolicy.Draw(rt, "policy")
			if rapid.Bool().Draw(rt, "adds a label") {
				pd.Spec.Labels = map[string]string{"x": rapid.SampledFrom(values[1:]).Draw(rt, "added")}
				adds = true
			}
			pds = append(pds, pd)
		}
		together := ""
		all := slices.Concat(values, []string{"other"})
		for _, x := range all {
			for _, y := range all {
				labels := map[string]string{}
				for key, value := range map[string]string{"x": x, "y": y} {
					if value != "" {
						labels[key] = value
					}
				}
				raw := encodeJSON(rapidTB{t, rt}, map[string]any{
					"metadata": map[string]any{"name": "p", "labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}},
				})
				resp := handle(rapidTB{t, rt}, raw, pds...)
				after := string(cases.Apply(rapidTB{t, rt}, raw, resp))
				if resp.Allowed && strings.Contains(after, meta.Mark("a")+`"`) && strings.Contains(after, meta.Mark("b")+`"`) {
					together = fmt.Sprint(labels)
				}
			}
		}
		excluded := compare.Exclusive(plan.Compile(pds[0]), plan.Compile(pds[1]))
		if excluded && together != "" {
			rt.Fatalf("they are taken to exclude each other, and a pod with the labels %s has both", together)
		}
		if !excluded && together == "" && !adds {
			rt.Fatal("no pod has both, and that is not seen")
		}
	})
}

func TestAuthorsAreWarnedOfObjectsThatAddedLabelsSelectInTurn(t *testing.T) {
	object := func(name, selects, adds string, allowExclude bool, team ...string) *plan.Plan {
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, only := range team {
			cpd.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": only}}
		}
		cpd.Spec.Selector.MatchLabels, cpd.Spec.AllowExclude = map[string]string{selects: "true"}, allowExclude
		if adds != "" {
			cpd.Spec.Labels = map[string]string{adds: "true"}
		}
		return plan.CompileCluster(cpd)
	}
	first, then := object("audit", "proxied", "audited", false), object("further", "audited", "", false)
	want := "ClusterPodDefault audit adds a label that selects ClusterPodDefault further"
	for _, warnings := range [][]string{compare.SelectedInTurn(first, then), compare.SelectedInTurn(then, first)} {
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], want) {
			t.Errorf("%q, want %s", warnings, want)
		}
	}
	for what, pair := range map[string][2]*plan.Plan{
		"another label":          {first, object("x", "other", "", false)},
		"an optional object":     {first, object("x", "audited", "", true)},
		"labels of optional one": {object("x", "proxied", "audited", true), then},
		"of other namespaces":    {object("audit", "proxied", "audited", false, "a"), object("further", "audited", "", false, "b")},
	} {
		if warnings := compare.SelectedInTurn(pair[0], pair[1]); len(warnings) > 0 {
			t.Errorf("%s: %q", what, warnings)
		}
	}
}
