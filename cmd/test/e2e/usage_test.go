// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testUsage creates pods whose ServiceAccount may, or may not, use a PodDefault that brings a
// Secret, and takes the server's right to ask.
func testUsage(t *testing.T, e *env) {
	t.Parallel() // answers hold for seconds
	name := e.namespace(t, "usage")
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "granted"}})
	account := e.serviceAccount(t, name)
	e.serve(t, name, "--kubeconfig", account, lab.Set("webhooks.poddefault.usage", poddefault.UsageCheck), lab.Set("webhooks.poddefault.freshness", poddefault.Consistent),
		lab.Set("webhooks.poddefault.guard", ""), lab.Set("registration.timeoutSeconds", "5"))
	e.create(t, podDefault(name, "credentials", kubeflowv1alpha1.PodDefaultSpec{
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}},
	}))
	e.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "use"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{kubeflowv1alpha1.PodDefaultResource}, ResourceNames: []string{"credentials"}, Verbs: []string{"use"}},
	}})
	e.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "use"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "use"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: "granted"}},
	})
	try := func(ctx context.Context, account string) (*corev1.Pod, error) {
		pod := simplePod(name, "pod-"+account)
		pod.Spec.ServiceAccountName = account
		return pod, e.client.Create(ctx, pod, client.DryRunAll)
	}
	eventually(t, "a pod to get what its ServiceAccount may use", func(ctx context.Context) (bool, error) {
		pod, err := try(ctx, "granted")
		return err == nil && len(pod.Spec.Containers[0].EnvFrom) == 1, err
	})
	_, err := try(t.Context(), "default")
	if err == nil || !strings.Contains(err.Error(), "kubectl auth can-i use poddefaults.kubeflow.org/credentials -n usage --as system:serviceaccount:usage:default") {
		t.Errorf("a pod whose ServiceAccount may not use it: %v", err)
	}
	// The pod is neither injected nor admitted without while nobody answers.
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := e.client.List(t.Context(), bindings); err != nil {
		t.Fatal(err)
	}
	removed := 0
	for i := range bindings.Items {
		for _, subject := range bindings.Items[i].Subjects {
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == name && subject.Name != "granted" {
				if err := e.client.Delete(t.Context(), &bindings.Items[i]); err != nil {
					t.Fatal(err)
				}
				removed++
			}
		}
	}
	if removed == 0 {
		t.Fatal("the server has no rights to take")
	}
	eventually(t, "a pod to be refused because the server may not ask", func(ctx context.Context) (bool, error) {
		_, err := try(ctx, "granted")
		return err != nil && strings.Contains(err.Error(), "failed calling webhook"), nil
	})
}
