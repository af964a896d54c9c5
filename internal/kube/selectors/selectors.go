// SPDX-License-Identifier: Apache-2.0

// Package selectors reads label selectors by their terms: what they say whatever objects
// there are.
package selectors

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Terms are the terms of a selector, in no order. A label is a set of one value. A nil
// selector has none, as has one that selects all.
func Terms(s *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	if s == nil {
		return nil
	}
	var out []metav1.LabelSelectorRequirement
	for key, value := range s.MatchLabels {
		out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	return append(out, s.MatchExpressions...)
}

// Both selects what two selectors select. Nil selects all.
func Both(a, b *metav1.LabelSelector) *metav1.LabelSelector {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	out := a.DeepCopy()
	for _, key := range slices.Sorted(maps.Keys(b.MatchLabels)) {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{b.MatchLabels[key]},
		})
	}
	out.MatchExpressions = append(out.MatchExpressions, b.MatchExpressions...)
	return out
}

// Selects reports whether the selector matches the labels. Nil matches all; an invalid
// selector matches nothing.
func Selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && compiled.Matches(labels.Set(set))
}

// Contradicts tells whether two terms prove that nothing is selected.
func Contradicts(s *metav1.LabelSelector) bool {
	terms := Terms(s)
	return slices.ContainsFunc(terms, func(x metav1.LabelSelectorRequirement) bool {
		return slices.ContainsFunc(terms, func(y metav1.LabelSelectorRequirement) bool { return x.Key == y.Key && excludes(x, y) })
	})
}

// excludes tells whether y leaves none of the values that x selects.
func excludes(x, y metav1.LabelSelectorRequirement) bool {
	switch x.Operator {
	case metav1.LabelSelectorOpIn:
		return !slices.ContainsFunc(x.Values, func(v string) bool {
			switch y.Operator {
			case metav1.LabelSelectorOpIn:
				return slices.Contains(y.Values, v)
			case metav1.LabelSelectorOpNotIn:
				return !slices.Contains(y.Values, v)
			case metav1.LabelSelectorOpDoesNotExist:
				return false
			}
			return true
		})
	case metav1.LabelSelectorOpExists:
		return y.Operator == metav1.LabelSelectorOpDoesNotExist
	}
	return false
}

// OptsIn tells whether only what has some label is selected.
func OptsIn(s *metav1.LabelSelector) bool {
	return slices.ContainsFunc(Terms(s), func(t metav1.LabelSelectorRequirement) bool {
		return t.Operator == metav1.LabelSelectorOpIn || t.Operator == metav1.LabelSelectorOpExists
	})
}

// ExcludesNamespace tells whether a selector of namespaces leaves out the one with that
// name: by the name, or because only namespaces with some label are meant, which nobody
// gives to those of the system.
func ExcludesNamespace(s *metav1.LabelSelector, name string) bool {
	return slices.ContainsFunc(Terms(s), func(t metav1.LabelSelectorRequirement) bool {
		named := t.Key == corev1.LabelMetadataName
		switch t.Operator {
		case metav1.LabelSelectorOpNotIn:
			return named && slices.Contains(t.Values, name)
		case metav1.LabelSelectorOpIn:
			return !named || !slices.Contains(t.Values, name)
		case metav1.LabelSelectorOpExists:
			return !named
		case metav1.LabelSelectorOpDoesNotExist:
			return named
		}
		return false
	})
}
