// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExcludedNamespaces returns the namespaces that must work without webhooks: the default of
// registration.excludedNamespaces, and what lint expects of other webhooks. The chart's values
// repeat it.
func ExcludedNamespaces() []string {
	return []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespacePublic}
}
