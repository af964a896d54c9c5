// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// UserRoles are the ClusterRoles that the roles admin, edit and view of Kubernetes aggregate: who may
// edit a namespace may edit its PodDefaults, as far as their authors are allowed to (authorizeAuthors).
// The roles write nothing of the cluster, no status, no revision and no Exemption. The names begin with that of the
// configuration.
func UserRoles(configuration string) []runtime.Object {
	role := func(suffix, aggregatedTo string, rules ...rbacv1.PolicyRule) runtime.Object {
		return &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: configuration + suffix, Labels: map[string]string{
				registration.ManagedByLabel: registration.ManagedByValue, "rbac.authorization.k8s.io/aggregate-to-" + aggregatedTo: "true",
			}},
			Rules: rules,
		}
	}
	return []runtime.Object{
		// The role admin aggregates what edit does.
		role("-poddefaults-edit", "edit", rbacv1.PolicyRule{
			APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource},
			Verbs: []string{"create", "delete", "deletecollection", "patch", "update"},
		}),
		// The roles edit and admin aggregate what view does.
		role("-poddefaults-view", "view", rbacv1.PolicyRule{
			APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource},
			Verbs: []string{"get", "list", "watch"},
		}, rbacv1.PolicyRule{
			APIGroups: []string{sallyportv1alpha1.GroupName},
			Resources: []string{
				sallyportv1alpha1.ClusterPodDefaultResource, sallyportv1alpha1.ClusterPodDefaultRevisionResource, sallyportv1alpha1.ExemptionResource,
				sallyportv1alpha1.PodDefaultRevisionResource,
			},
			Verbs: []string{"get", "list", "watch"},
		}),
	}
}
