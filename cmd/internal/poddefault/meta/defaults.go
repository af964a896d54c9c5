// SPDX-License-Identifier: Apache-2.0

package meta

import (
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// PolicyOf returns the conflict policy of a spec, empty for the schema's default, Kubeflow: an
// object from a file need not have it.
func PolicyOf(spec *kubeflowv1alpha1.PodDefaultSpec) kubeflowv1alpha1.ConflictPolicy {
	if spec.ConflictPolicy == kubeflowv1alpha1.ConflictKubeflow {
		return ""
	}
	return spec.ConflictPolicy
}

// IsDefault reports whether a member of an encoded spec has the schema's default, and so means
// what its absence means. Defaults of fields that Go omits, and of fields that no revision has,
// are not in it.
func IsDefault(name, value string) bool {
	switch name {
	case "conflictPolicy":
		return value == `"`+string(kubeflowv1alpha1.ConflictKubeflow)+`"`
	case "mode":
		return value == `"`+string(kubeflowv1alpha1.ModeEnforce)+`"`
	}
	return false
}
