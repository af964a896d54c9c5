// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkEnvVar(c *typeChecker, at *field.Path, e *corev1.EnvVar) {
	if e.ValueFrom == nil {
		return
	}
	at = at.Child("valueFrom")
	if e.Value != "" {
		c.invalid(at, field.OmitValueType{}, "may not be set beside a value")
	}
	if ref := e.ValueFrom.FieldRef; ref != nil {
		c.fieldPath(at.Child("fieldRef", "fieldPath"), ref.FieldPath,
			"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
			"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	}
	if ref := e.ValueFrom.ResourceFieldRef; ref != nil {
		c.resourceField(at.Child("resourceFieldRef", "resource"), ref.Resource)
	}
}

var subscripted = regexp.MustCompile(`^(metadata\.(?:annotations|labels))\['(.*)'\]$`)

// fieldPath checks which pod field a variable or file may use.
func (c *typeChecker) fieldPath(at *field.Path, path string, choices ...string) {
	switch parts := subscripted.FindStringSubmatch(path); {
	case path == "": // the table checks it
	case len(parts) > 0 && parts[1] == "metadata.annotations":
		c.invalidEach(at, path, validation.IsQualifiedName(strings.ToLower(parts[2])))
	case len(parts) > 0:
		c.invalidEach(at, path, validation.IsQualifiedName(parts[2]))
	default:
		// The API server still accepts it as an alias of spec.nodeName.
		if path == "spec.host" && slices.Contains(choices, "spec.nodeName") {
			return
		}
		c.oneOf(at, path, choices...)
	}
}

var resourceFields = []string{"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage"}

func (c *typeChecker) resourceField(at *field.Path, name string) {
	if !strings.HasPrefix(name, "limits.hugepages-") && !strings.HasPrefix(name, "requests.hugepages-") {
		c.oneOf(at, name, resourceFields...)
	}
}

func checkDivisor(c *typeChecker, at *field.Path, ref *corev1.ResourceFieldSelector) {
	at, divisor := at.Child("divisor"), ref.Divisor.String()
	switch {
	case ref.Divisor.IsZero():
	case strings.HasSuffix(ref.Resource, ".cpu"):
		c.oneOf(at, divisor, "1", "1m")
	default:
		c.oneOf(at, divisor, "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
	}
}
