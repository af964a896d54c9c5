// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func selecting(name string, selector metav1.LabelSelector) *kubeflowv1alpha1.PodDefault {
	return &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name}, Spec: kubeflowv1alpha1.PodDefaultSpec{Selector: selector}}
}

func TestRequiredKeys(t *testing.T) {
	labels := func(keys ...string) metav1.LabelSelector {
		s := metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, key := range keys {
			s.MatchLabels[key] = "x"
		}
		return s
	}
	expression := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	var many []metav1.LabelSelector
	for i := range maxNarrowKeys + 1 {
		many = append(many, labels(fmt.Sprintf("key-%d", i)))
	}
	for name, test := range map[string]struct {
		selectors []metav1.LabelSelector
		keys      []string
		ok        bool
	}{
		"no objects need no pod":                   {nil, nil, true},
		"one key of each selector is enough":       {[]metav1.LabelSelector{labels("b", "a"), expression("c", metav1.LabelSelectorOpExists)}, []string{"a", "c"}, true},
		"a selector that pods without labels meet": {[]metav1.LabelSelector{labels("a"), expression("b", metav1.LabelSelectorOpNotIn, "x")}, nil, false},
		"an empty selector":                        {[]metav1.LabelSelector{{}}, nil, false},
		"an invalid selector selects nothing":      {[]metav1.LabelSelector{labels("a"), expression("b", "Like")}, []string{"a"}, true},
		"too many keys":                            {many, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			index := NewIndex()
			for i, selector := range test.selectors {
				index.Set(Compile(selecting(fmt.Sprint(i), selector)))
			}
			keys, ok := index.RequiredKeys()
			if ok != test.ok || !slices.Equal(keys, test.keys) {
				t.Errorf("got %q, %t", keys, ok)
			}
		})
	}
}
