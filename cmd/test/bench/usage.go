// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/usage"
)

// usageName is sallyport with the setting usage: Check.
const usageName = "usage"

// usageOneMatch is the case that the limit refers to.
const usageOneMatch = "usage-one-match"

// usageAccount is the ServiceAccount of the recorded notebook pods.
const usageAccount = "default-editor"

// usageStage measures the same pod with and without usage: Check. The PodDefault that selects
// it brings a Secret, so its ServiceAccount needs the right to use it. Answers hold for ten
// seconds: as with any workload that has many pods, most reviews find theirs.
func usageStage(few int, injected string) stage {
	return stage{
		part:        partPodDefaults,
		podDefaults: few,
		servers:     []string{floorName, sallyportName, usageName},
		prepare: func(ctx context.Context, s *site, _ schedule, _ progress) error {
			return s.cp.mayUse(ctx, injected)
		},
		cases: []benchCase{
			{id: usageOneMatch, name: "notebook pod, 1 matches, its usage is checked", review: "notebook-selecting", path: podDefaultPath, adds: []string{injected}},
		},
	}
}

// mayUse gives the ServiceAccount of the notebook pods the right to use a PodDefault.
func (cp *controlPlane) mayUse(ctx context.Context, podDefault string) error {
	meta := metav1.ObjectMeta{Name: "use-" + podDefault}
	_, err := cp.clients.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupName}, Resources: []string{v1alpha1.PodDefaultResource}, ResourceNames: []string{podDefault}, Verbs: []string{usage.Verb},
	}}}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = cp.clients.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: usageAccount}},
		}, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("granting the right to use PodDefault %s: %w", podDefault, err)
	}
	return nil
}
