// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestUserRoles: who has Kubernetes' roles admin, edit or view has them for PodDefaults too, once the
// ClusterRoles of an installation are applied, and gets nothing of the cluster. The API server is its
// own, because the roles are every user's, and the controller that aggregates them runs beside it.
func TestUserRoles(t *testing.T) {
	t.Parallel()
	e := newEnv(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"))
	lab.StartBinary(t, "kube-controller-manager", "--kubeconfig", e.kubeconfig, "--leader-elect=false", "--secure-port", "0",
		"--controllers", "clusterrole-aggregation-controller")
	name := e.namespace(t, "user-roles")
	as := map[string]client.Client{}
	for _, role := range []string{"admin", "edit", "view"} {
		e.create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "user-" + role}},
		})
		as[role] = e.user(t, "user-"+role)
	}
	pd := func() *kubeflowv1alpha1.PodDefault { return envPodDefault(name, "written") }
	if err := as["admin"].Create(t.Context(), pd()); !apierrors.IsForbidden(err) {
		t.Fatalf("before the roles are there, the admin of a namespace writes PodDefaults: %v", err)
	}

	printed, err := exec.CommandContext(t.Context(), e.binary, "manifests", "--part", "user-roles", "--service", "sallyport-system/sallyport").Output()
	if err != nil {
		t.Fatal(err)
	}
	apply := exec.CommandContext(t.Context(), kubectl(), "--kubeconfig", e.kubeconfig, "apply", "--server-side", "-f", "-")
	apply.Stdin = strings.NewReader(string(printed))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	for _, role := range []string{"admin", "edit"} {
		eventually(t, "the role "+role+" to write PodDefaults", func(ctx context.Context) (bool, error) {
			err := as[role].Create(ctx, pd(), client.DryRunAll)
			return err == nil, client.IgnoreNotFound(err)
		})
	}
	eventually(t, "the role view to list PodDefaults", func(ctx context.Context) (bool, error) {
		err := as["view"].List(ctx, &kubeflowv1alpha1.PodDefaultList{}, client.InNamespace(name))
		return err == nil, nil
	})
	written := pd()
	if err := as["edit"].Create(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	for role, c := range as {
		ctx := t.Context()
		allowed, refused := map[string]error{}, map[string]error{}
		allowed["get a PodDefault"] = c.Get(ctx, client.ObjectKeyFromObject(written), &kubeflowv1alpha1.PodDefault{})
		allowed["list Exemptions"] = c.List(ctx, &sallyportv1alpha1.ExemptionList{}, client.InNamespace(name))
		refused["write an Exemption"] = c.Create(ctx, exemption(name, "e", time.Hour, "*", "written"), client.DryRunAll)
		refused["delete Exemptions"] = c.DeleteAllOf(ctx, &sallyportv1alpha1.Exemption{}, client.InNamespace(name), client.DryRunAll)
		allowed["list revisions"] = c.List(ctx, &sallyportv1alpha1.PodDefaultRevisionList{}, client.InNamespace(name))
		patched := written.DeepCopy()
		patched.Spec.Desc = role
		writes := allowed
		if role == "view" {
			writes = refused
		}
		writes["patch a PodDefault"] = c.Patch(ctx, patched, client.MergeFrom(written), client.DryRunAll)
		writes["delete a PodDefault"] = c.Delete(ctx, written.DeepCopy(), client.DryRunAll)
		writes["delete PodDefaults"] = c.DeleteAllOf(ctx, &kubeflowv1alpha1.PodDefault{}, client.InNamespace(name), client.DryRunAll)

		patched.Status.ObservedGeneration = 1
		refused["write a status"] = c.Status().Update(ctx, patched, client.DryRunAll)
		refused["write a PodDefault of another namespace"] = c.Create(ctx, envPodDefault(metav1.NamespaceDefault, "other"), client.DryRunAll)
		refused["write a revision"] = c.Create(ctx, &sallyportv1alpha1.PodDefaultRevision{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "forged"}}, client.DryRunAll)
		refused["write a ClusterPodDefault"] = c.Create(ctx, &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}, client.DryRunAll)
		// Of one namespace, the role has nothing of the cluster.
		refused["list ClusterPodDefaults"] = c.List(ctx, &sallyportv1alpha1.ClusterPodDefaultList{})
		for what, err := range allowed {
			if err != nil {
				t.Errorf("%s: %s: %v", role, what, err)
			}
		}
		for what, err := range refused {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s: %s: %v, want it to be forbidden", role, what, err)
			}
		}
	}
	// With the role for the whole cluster, users read what is the cluster's, and write no more.
	e.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "everywhere"}},
	})
	everywhere := e.user(t, "everywhere")
	eventually(t, "a user of the whole cluster to list ClusterPodDefaults", func(ctx context.Context) (bool, error) {
		return everywhere.List(ctx, &sallyportv1alpha1.ClusterPodDefaultList{}) == nil, nil
	})
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}
	if err := everywhere.Create(t.Context(), cpd, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("the role edit writes ClusterPodDefaults: %v", err)
	}
}
