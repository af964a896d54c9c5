// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// optsOut reports whether some label excludes an object.
func optsOut(s *metav1.LabelSelector) bool {
	return slices.ContainsFunc(selectors.Terms(s), func(t metav1.LabelSelectorRequirement) bool {
		return t.Operator == metav1.LabelSelectorOpNotIn || t.Operator == metav1.LabelSelectorOpDoesNotExist
	})
}

// selects reports whether the selector matches the labels. Nil matches all; an invalid
// selector matches nothing.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && compiled.Matches(labels.Set(set))
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
		return !selects(s, set)
	}
	return selectors.ExcludesNamespace(s, name)
}

// labelsOfNamespace always includes the label that the API server adds.
func (c *chain) labelsOfNamespace(name string) (set map[string]string, known bool) {
	set = map[string]string{corev1.LabelMetadataName: name}
	if c.request.NamespaceLabels != nil {
		maps.Copy(set, c.request.NamespaceLabels)
		return set, true
	}
	if n, ok := c.namespacesByName[name]; ok {
		maps.Copy(set, n.value.Labels)
		return set, true
	}
	return set, false
}

func asked(s *metav1.LabelSelector, set map[string]string, field, what string) step {
	if selects(s, set) {
		return step{In, field + " matches " + what}
	}
	return step{Out, field + " leaves out " + what}
}

func labelsOf(object map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: object}).GetLabels()
}
