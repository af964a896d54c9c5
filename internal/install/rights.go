// SPDX-License-Identifier: Apache-2.0

// Package install prints what an application needs in a cluster, and removes what it
// registered.
package install

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/registration/rbac"
)

// Rights are the permissions of a server with the given settings, and its identity.
type Rights struct {
	Registration   registration.Settings
	Certificate    certificate.Settings
	LeaderElection registration.LeaderElectionSettings
	// ServiceAccount is the server's, in the namespace of the Service. A server with a URL runs
	// outside the cluster, and its administrator binds the roles to its user.
	ServiceAccount string
	// Rules are the permissions of webhooks and controllers, RulesIn their permissions in
	// single namespaces.
	Rules   []rbacv1.PolicyRule
	RulesIn map[string][]rbacv1.PolicyRule
	// CRDs are the names of the CustomResourceDefinitions whose conversion is registered.
	CRDs []string
	// ControllersLease is the name of the lease for electing the replica that runs the
	// controllers; empty if there are none. It is in LeaderElection.Namespace or, if that is
	// empty, in the namespace of the Service, which is the pod's.
	ControllersLease string
	// ComponentsOf is the name of the application if one of its components needs a leader, see
	// sallyport.Environment; otherwise empty. Components share the lease of an authority in a
	// Secret. Without such an authority they have their own.
	ComponentsOf string
}

// Objects returns a ClusterRole and Roles with exactly these permissions and, for a server in
// the cluster, its ServiceAccount and the bindings.
func (r Rights) Objects() []runtime.Object {
	config := hosting.Config(&r.Registration)
	rules := r.Rules
	if r.Registration.Mode == registration.ModeAPI {
		rules = append(rules[:len(rules):len(rules)], rbac.PolicyRules(config.Name)...)
		rules = append(rules, rbac.ConversionPolicyRules(r.CRDs...)...)
		if owner := hosting.OwnerName(&r.Registration); owner != "" {
			rules = append(rules, rbac.OwnerPolicyRules(owner)...)
		}
	}
	var subjects []rbacv1.Subject
	if service := config.Endpoint.Service; service != nil {
		subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: service.Namespace, Name: r.ServiceAccount}}
	}

	objects := []runtime.Object{&rbacv1.ClusterRole{
		TypeMeta: rbacKind("ClusterRole"), ObjectMeta: managed("", config.Name), Rules: rules,
	}}
	if subjects != nil {
		objects = append(objects,
			&rbacv1.ClusterRoleBinding{
				TypeMeta: rbacKind("ClusterRoleBinding"), ObjectMeta: managed("", config.Name), Subjects: subjects,
				RoleRef: roleRef("ClusterRole", config.Name),
			},
			&corev1.ServiceAccount{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: managed(subjects[0].Namespace, r.ServiceAccount),
			})
	}
	role := func(namespace, name string, rules []rbacv1.PolicyRule) {
		objects = append(objects, &rbacv1.Role{TypeMeta: rbacKind("Role"), ObjectMeta: managed(namespace, name), Rules: rules})
		if subjects != nil {
			objects = append(objects, &rbacv1.RoleBinding{
				TypeMeta: rbacKind("RoleBinding"), ObjectMeta: managed(namespace, name), Subjects: subjects, RoleRef: roleRef("Role", name),
			})
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(r.RulesIn)) {
		role(namespace, config.Name+"-webhooks", r.RulesIn[namespace])
	}
	if r.Registration.Mode == registration.ModeAPI {
		role(metav1.NamespaceDefault, config.Name+"-events", rbac.EventPolicyRules())
	}
	if namespace, secret, ok := hosting.AuthoritySecret(&r.Certificate, config.Endpoint); ok {
		role(namespace, config.Name, authorityRules(secret, r.LeaderElection.LeaderElect))
	} else if namespace, ok := hosting.ComponentsNamespace(r.LeaderElection, config); ok && r.ComponentsOf != "" {
		lease := hosting.ComponentsLease(r.ComponentsOf)
		role(namespace, lease, leaseRules(lease))
	}
	if namespace, ok := r.controllersNamespace(); ok {
		role(namespace, r.ControllersLease+"-controllers", controllersRules(r.ControllersLease))
	}
	return objects
}

// controllersNamespace returns the namespace of the controllers' lease, if there is one.
func (r Rights) controllersNamespace() (namespace string, ok bool) {
	namespace = r.LeaderElection.Namespace
	if service := hosting.Config(&r.Registration).Endpoint.Service; namespace == "" && service != nil {
		namespace = service.Namespace
	}
	return namespace, r.ControllersLease != "" && r.LeaderElection.LeaderElect && namespace != ""
}

// controllersRules are the permissions to elect the replica that runs the controllers.
// controller-runtime records events about the election in the older API group.
func controllersRules(lease string) []rbacv1.PolicyRule {
	return append(leaseRules(lease), rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
	})
}

func leaseRules(lease string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{lease}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
	}
}

// authorityRules are the server's permissions in the namespace of its authority. The lease has
// the name of the Secret. RBAC cannot restrict create by name.
func authorityRules(secret string, elects bool) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
	}
	if elects {
		rules = append(rules, leaseRules(secret)...)
	}
	return rules
}

func managed(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue},
	}
}

func rbacKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}
