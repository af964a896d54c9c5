// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// optsOut reports whether some label excludes an object.
func optsOut(s *metav1.LabelSelector) bool {
	return slices.ContainsFunc(selectors.Terms(s), func(t metav1.LabelSelectorRequirement) bool {
		return t.Operator == metav1.LabelSelectorOpNotIn || t.Operator == metav1.LabelSelectorOpDoesNotExist
	})
}

// excludesNamespace reports whether a namespace selector excludes a namespace. If the
// namespace was read, its labels decide. Otherwise the requirements do: one about the
// name decides, and one for another label excludes the namespace, because system
// namespaces usually have no other labels.
func (in *Inventory) excludesNamespace(s *metav1.LabelSelector, name string) bool {
	if namespace, ok := in.namespacesByName[name]; ok && len(namespace.value.Labels) > 0 {
		set := map[string]string{corev1.LabelMetadataName: name} // added by the API server
		for key, value := range namespace.value.Labels {
			set[key] = value
		}
		return !selectors.Selects(s, set)
	}
	return selectors.ExcludesNamespace(s, name)
}
