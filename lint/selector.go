// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/internal/selectors"
)

// optsOut tells whether what has some label is left out.
func optsOut(s *metav1.LabelSelector) bool {
	return slices.ContainsFunc(selectors.Terms(s), func(t metav1.LabelSelectorRequirement) bool {
		return t.Operator == metav1.LabelSelectorOpNotIn || t.Operator == metav1.LabelSelectorOpDoesNotExist
	})
}

// selects tells whether the selector matches the labels; a nil one matches all. One
// that is not valid selects nothing.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && compiled.Matches(labels.Set(set))
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
	return selectors.ExcludesNamespace(s, name)
}
