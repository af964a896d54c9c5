// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Extended reports whether a resource is unknown to Kubernetes, such as a GPU.
// Containers do not share extended resources.
func Extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}
