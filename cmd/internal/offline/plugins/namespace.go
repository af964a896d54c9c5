// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// builtin are the namespaces that each cluster has.
var builtin = []string{corev1.NamespaceDefault, corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem}

// CheckNamespace evaluates the plugin NamespaceLifecycle, and adds what it says to an answer.
func (o *Objects) CheckNamespace(a *Answer, name string) {
	namespace := o.namespaces[name]
	switch {
	case namespace != nil && (namespace.Status.Phase == corev1.NamespaceTerminating || namespace.DeletionTimestamp != nil):
		a.deny("NamespaceLifecycle", "unable to create new content in namespace %s because it is being terminated", name)
	case namespace != nil:
	case slices.Contains(builtin, name):
		a.Open.add(openNamespace, name)
	case len(o.namespaces) > 0:
		a.unknown("whether the namespace %s exists, and its labels: it is not among the Namespaces in the files", name)
	default:
		a.Open.add(openNamespace, name)
	}
}

// Labels returns the labels of a namespace, with the one that the API server sets; nil if they are not known.
func (o *Objects) Labels(name string) map[string]string {
	namespace := o.namespaces[name]
	if namespace == nil {
		return nil
	}
	labels := maps.Clone(namespace.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = name
	return labels
}
