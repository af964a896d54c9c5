// SPDX-License-Identifier: Apache-2.0

package validate

import "k8s.io/apimachinery/pkg/util/validation/field"

// connections checks what the selectors need.
func (c *checker) connections(path *field.Path) {
	switch selector := c.spec.VolumesFromSecretSelector; {
	case selector != nil && c.spec.SecretsMountPath == "":
		c.required(child(path, "secretsMountPath"), "volumesFromSecretSelector needs it")
	case selector == nil && c.spec.SecretsMountPath != "":
		c.invalid(child(path, "secretsMountPath"), c.spec.SecretsMountPath, "may be set beside volumesFromSecretSelector alone")
	}
}
