// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Security contexts are merged field by field. Every pod has an empty one, and
// replacing the whole would break pods that set fields themselves.

var (
	capabilityAddKind  = &listKind{name: "capability", keyName: "name", key: text, differences: never}
	capabilityDropKind = &listKind{name: "dropped capability", keyName: "name", key: text, differences: never}
)

func (c *Compiled) compileSecurity(pod *corev1.PodSecurityContext, container *corev1.SecurityContext) {
	if pod != nil {
		c.podValues = fieldsOf(c.podValues, encode(pod), plainRule, []string{"supplementalGroups", "sysctls"}, "securityContext")
		c.podLists = appendList(c, c.podLists, groupKind, pod.SupplementalGroups, "securityContext", "supplementalGroups")
		c.podLists = appendList(c, c.podLists, sysctlKind, pod.Sysctls, "securityContext", "sysctls")
	}
	if container == nil {
		return
	}
	c.containerValues = fieldsOf(c.containerValues, encode(container), plainRule, []string{"capabilities"}, "securityContext")
	if capabilities := container.Capabilities; capabilities != nil {
		c.containerLists = appendList(c, c.containerLists, capabilityAddKind, capabilities.Add, "securityContext", "capabilities", "add")
		c.containerLists = appendList(c, c.containerLists, capabilityDropKind, capabilities.Drop, "securityContext", "capabilities", "drop")
	}
}

// withdraws reports whether the element is a capability that the container's other list
// contains: one adds what the other drops. Policies can only resolve that conflict by
// keeping the existing element.
func (m *merge) withdraws(t *container, f *fieldList, wanted item) (other *item) {
	opposite := fieldList{tokens: slices.Clone(f.tokens)}
	switch f.kind {
	case capabilityAddKind:
		opposite.kind, opposite.tokens[2] = capabilityDropKind, "drop"
	case capabilityDropKind:
		opposite.kind, opposite.tokens[2] = capabilityAddKind, "add"
	default:
		return nil
	}
	other, _ = t.list(&opposite).find(wanted.key)
	return other
}

// opposes returns what the element that [merge.withdraws] found does, for messages.
func opposes(f *fieldList) string {
	if f.kind == capabilityAddKind {
		return " drops it"
	}
	return " adds it"
}
