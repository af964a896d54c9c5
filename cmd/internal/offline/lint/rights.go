// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// role is a Role or a ClusterRole.
type role struct {
	*Object
	rules []rbacv1.PolicyRule
}

// roleBinding is a binding of either kind.
type roleBinding struct {
	*Object
	subjects []rbacv1.Subject
	ref      rbacv1.RoleRef
}

func (in *Inventory) addRole(o *Object) error {
	t, err := read[rbacv1.ClusterRole](o) // decodes everything relevant of a Role too
	if err != nil {
		return err
	}
	in.roles = append(in.roles, &role{o, t.value.Rules})
	return nil
}

func (in *Inventory) addRoleBinding(o *Object) error {
	t, err := read[rbacv1.ClusterRoleBinding](o)
	if err != nil {
		return err
	}
	in.roleBindings = append(in.roleBindings, &roleBinding{o, t.value.Subjects, t.value.RoleRef})
	return nil
}

// subjects returns the subjects with a ClusterRole in all namespaces, sorted, for
// messages.
func (in *Inventory) subjects(r *role) []string {
	var out []string
	for _, b := range in.roleBindings {
		if b.Kind != "ClusterRoleBinding" || b.ref.Kind != r.Kind || b.ref.Name != r.Name {
			continue
		}
		for _, s := range b.subjects {
			name := s.Name
			if s.Namespace != "" {
				name = s.Namespace + "/" + name
			}
			out = append(out, s.Kind+" "+name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// systemRole reports whether a role is built in and needs its rights.
func systemRole(name string) bool {
	return name == "cluster-admin" || strings.HasPrefix(name, "system:")
}

// hasOrAll reports whether a list has a value, or "*".
func hasOrAll(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// verbsOn returns which of the verbs a rule allows on all objects of a resource.
func verbsOn(rule rbacv1.PolicyRule, group, resource string, verbs ...string) []string {
	if len(rule.ResourceNames) > 0 || !hasOrAll(rule.APIGroups, group) || !hasOrAll(rule.Resources, resource) {
		return nil
	}
	var out []string
	for _, verb := range verbs {
		if hasOrAll(rule.Verbs, verb) {
			out = append(out, verb)
		}
	}
	return out
}
