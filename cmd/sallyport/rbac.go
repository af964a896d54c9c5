// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/registration"
)

// clusterRules are what the server may do everywhere, and no more.
func clusterRules(name, owner string, mode registration.Mode) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{kubeflowv1alpha1.GroupName},
		Resources: []string{kubeflowv1alpha1.PodDefaultResource},
		Verbs:     []string{"list", "watch"},
	}}
	if mode == registration.ModeAPI {
		rules = append(rules, registration.PolicyRules(name)...)
		if owner != "" {
			rules = append(rules, registration.OwnerPolicyRules(owner)...)
		}
	}
	return rules
}

// authorityRules are what the server may do in the namespace of its authority, and
// no more. The lease has the name of the Secret. RBAC knows no name at creation.
func authorityRules(secret string, elects bool) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
	}
	if elects {
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{secret}, Verbs: []string{"get", "update"}},
			rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}})
	}
	return rules
}

// rbac is what the server may do, and who it is. With a URL it runs outside of the
// cluster, and its user is bound by whoever made it.
func (o *manifestsOptions) rbac(config registration.Config) []runtime.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue},
		}
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: config.Name}
	}
	var subjects []rbacv1.Subject
	if service := config.Endpoint.Service; service != nil {
		subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: service.Namespace, Name: o.serviceAccount}}
	}

	objects := []runtime.Object{&rbacv1.ClusterRole{
		TypeMeta: kind("ClusterRole"), ObjectMeta: meta("", config.Name), Rules: clusterRules(config.Name, o.registration.OwnerName(), o.registration.Mode),
	}}
	if subjects != nil {
		objects = append(objects,
			&rbacv1.ClusterRoleBinding{
				TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta("", config.Name), Subjects: subjects, RoleRef: ref("ClusterRole"),
			},
			&corev1.ServiceAccount{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: meta(subjects[0].Namespace, o.serviceAccount),
			})
	}
	if o.registration.Mode == registration.ModeAPI {
		objects = append(objects, &rbacv1.Role{
			TypeMeta: kind("Role"), ObjectMeta: meta(metav1.NamespaceDefault, config.Name+"-events"), Rules: registration.EventPolicyRules(),
		})
		if subjects != nil {
			objects = append(objects, &rbacv1.RoleBinding{
				TypeMeta: kind("RoleBinding"), ObjectMeta: meta(metav1.NamespaceDefault, config.Name+"-events"), Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: config.Name + "-events"},
			})
		}
	}
	namespace, secret, ok := o.certificates.AuthoritySecret(config.Endpoint)
	if !ok {
		return objects
	}
	objects = append(objects, &rbacv1.Role{
		TypeMeta: kind("Role"), ObjectMeta: meta(namespace, config.Name), Rules: authorityRules(secret, o.election.Enabled),
	})
	if subjects != nil {
		objects = append(objects, &rbacv1.RoleBinding{
			TypeMeta: kind("RoleBinding"), ObjectMeta: meta(namespace, config.Name), Subjects: subjects, RoleRef: ref("Role"),
		})
	}
	return objects
}
