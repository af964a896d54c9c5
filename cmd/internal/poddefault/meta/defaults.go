// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

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

// DropDefaults removes from the members of an encoded spec what has the schema's default, and so
// means what its absence means. Fields that Go omits, and those that no revision has, are left alone.
func DropDefaults(members map[string]jsontext.Value) {
	for name, value := range map[string]string{"conflictPolicy": string(kubeflowv1alpha1.ConflictKubeflow), "mode": string(kubeflowv1alpha1.ModeEnforce)} {
		if string(members[name]) == `"`+value+`"` {
			delete(members, name)
		}
	}
	if ports, ok := members["ports"]; ok { // no member of a port is a map with names of a user
		members["ports"] = bytes.ReplaceAll(ports, []byte(`,"protocol":"TCP"`), nil)
	}
}
