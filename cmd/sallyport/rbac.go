// SPDX-License-Identifier: Apache-2.0

package main

import (
	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// rights are those of the server with these settings, and no more.
func (o *manifestsOptions) rights() frontdoor.Rights {
	return frontdoor.Rights{
		Registration: o.registration, Certificate: o.certificates, LeaderElection: o.election, ServiceAccount: o.serviceAccount,
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{kubeflowv1alpha1.GroupName},
			Resources: []string{kubeflowv1alpha1.PodDefaultResource},
			Verbs:     []string{"list", "watch"},
		}},
	}
}
