// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// requirement is one term of a label selector. A label is a set of one value.
type requirement struct {
	key      string
	operator metav1.LabelSelectorOperator
	values   []string
}

func requirements(s *metav1.LabelSelector) []requirement {
	if s == nil {
		return nil
	}
	var out []requirement
	for key, value := range s.MatchLabels { // the order does not matter
		out = append(out, requirement{key, metav1.LabelSelectorOpIn, []string{value}})
	}
	for _, e := range s.MatchExpressions {
		out = append(out, requirement{e.Key, e.Operator, e.Values})
	}
	return out
}

// optsIn tells whether only what has some label is selected.
func optsIn(s *metav1.LabelSelector) bool {
	return slices.ContainsFunc(requirements(s), func(r requirement) bool {
		return r.operator == metav1.LabelSelectorOpIn || r.operator == metav1.LabelSelectorOpExists
	})
}

// optsOut tells whether what has some label is left out.
func optsOut(s *metav1.LabelSelector) bool {
	return slices.ContainsFunc(requirements(s), func(r requirement) bool {
		return r.operator == metav1.LabelSelectorOpNotIn || r.operator == metav1.LabelSelectorOpDoesNotExist
	})
}

// selects tells whether the selector matches the labels; a nil one matches all. One
// that is not valid selects nothing.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

// excludesNamespace tells whether a selector of namespaces leaves out the one with that
// name. If the namespace was read, its labels decide. If not, it is judged by the
// terms: one about the name decides, and one that asks for another label leaves the
// namespace out, as nobody gives labels to namespaces of the system.
func (in *Inventory) excludesNamespace(s *metav1.LabelSelector, name string) bool {
	if namespace, ok := in.namespacesByName[name]; ok && len(namespace.value.Labels) > 0 {
		set := map[string]string{corev1.LabelMetadataName: name} // which the API server adds
		for key, value := range namespace.value.Labels {
			set[key] = value
		}
		return !selects(s, set)
	}
	for _, r := range requirements(s) {
		named := r.key == corev1.LabelMetadataName
		switch r.operator {
		case metav1.LabelSelectorOpNotIn:
			if named && slices.Contains(r.values, name) {
				return true
			}
		case metav1.LabelSelectorOpIn:
			if !named || !slices.Contains(r.values, name) {
				return true
			}
		case metav1.LabelSelectorOpExists:
			if !named {
				return true
			}
		case metav1.LabelSelectorOpDoesNotExist:
			if named {
				return true
			}
		}
	}
	return false
}
