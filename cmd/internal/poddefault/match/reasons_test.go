// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestMismatchesNameTheLabel(t *testing.T) {
	for name, tc := range map[string]struct {
		expression metav1.LabelSelectorRequirement
		set        labels.Set
		want       string
	}{
		"another value":            {metav1.LabelSelectorRequirement{Key: "k", Operator: "In", Values: []string{"a"}}, labels.Set{"k": "b"}, `label k: it wants "a", the pod has "b"`},
		"none of several":          {metav1.LabelSelectorRequirement{Key: "k", Operator: "In", Values: []string{"a", "b"}}, nil, `label k: it wants one of a, b, the pod has no such label`},
		"one that must not be":     {metav1.LabelSelectorRequirement{Key: "k", Operator: "NotIn", Values: []string{"a"}}, labels.Set{"k": "a"}, `label k: it wants none of a, the pod has "a"`},
		"a label that is missing":  {metav1.LabelSelectorRequirement{Key: "k", Operator: "Exists"}, nil, `label k: it wants it to be there, the pod has no such label`},
		"a label that is too many": {metav1.LabelSelectorRequirement{Key: "k", Operator: "DoesNotExist"}, labels.Set{"k": ""}, `label k: it wants it not to be there, the pod has ""`},
		"a match":                  {metav1.LabelSelectorRequirement{Key: "k", Operator: "Exists"}, labels.Set{"k": ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{tc.expression}})
			if err != nil {
				t.Fatal(err)
			}
			if got := mismatch(selector, tc.set, "the pod"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := mismatch(labels.Nothing(), labels.Set(nil), "the pod"); got == "" {
		t.Error("a selector that selects nothing matches")
	}
	many := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, key := range strings.Split("abcdefgh", "") {
		many.MatchLabels[key] = "x"
	}
	selector, err := metav1.LabelSelectorAsSelector(many)
	if got := mismatch(selector, labels.Set(nil), "the pod"); err != nil || !strings.HasSuffix(got, "; and 5 labels more") {
		t.Errorf("got %q (%v)", got, err)
	}
	long := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "In", Values: strings.Split(strings.Repeat("value-", 20), "-")[:20]}}}
	for i := range long.MatchExpressions[0].Values {
		long.MatchExpressions[0].Values[i] += string(rune('a' + i))
	}
	selector, err = metav1.LabelSelectorAsSelector(long)
	if got := mismatch(selector, labels.Set(nil), "the pod"); err != nil || len(got) > 200 {
		t.Errorf("got %q (%v)", got, err)
	}
}
