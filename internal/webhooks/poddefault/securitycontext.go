// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Security contexts are merged field by field: every pod has an empty one, so that to
// set the whole would break those that say something of their own.

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

// withdraws tells whether the element is a capability that the other list of the
// container has: the one adds what the other drops. That is a conflict which no policy
// can resolve but to leave what is there.
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
