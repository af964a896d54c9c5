// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testConnections runs a server that has the printed rights, first without those for
// Secrets and then with them. Secrets count at once, as PodDefaults do.
func testConnections(t *testing.T, e *env) {
	t.Parallel() // it waits until the server looks again whether it may read Secrets
	name := e.namespace(t, "connections")
	account := e.serviceAccount(t, name)
	s := e.serve(t, name, "--kubeconfig", account, "--controllers=*", lab.Set("webhooks.poddefault.freshness", poddefault.Consistent),
		lab.Set("webhooks.poddefault.dataConnections", "connection"), lab.Set("registration.timeoutSeconds", "30"))
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "connections", Name: name, Labels: labels}, StringData: map[string]string{"PASSWORD": "hidden"}}
	}
	env, files := map[string]string{"connection": "env"}, map[string]string{"connection": "files"}
	e.create(t, secret("lake", env))
	e.create(t, secret("keys", files))
	e.create(t, secret("unrelated", nil))
	pd := podDefault(name, "connections", kubeflowv1alpha1.PodDefaultSpec{
		EnvFromSecretSelector:     &metav1.LabelSelector{MatchLabels: env},
		VolumesFromSecretSelector: &metav1.LabelSelector{MatchLabels: files}, SecretsMountPath: "/etc/connections",
	})
	e.create(t, pd)

	accepted := func(status metav1.ConditionStatus, text string) {
		t.Helper()
		eventually(t, "the condition Accepted to be "+string(status), func(ctx context.Context) (bool, error) {
			got := &kubeflowv1alpha1.PodDefault{}
			err := e.client.Get(ctx, client.ObjectKeyFromObject(pd), got)
			c := apimeta.FindStatusCondition(got.Status.Conditions, kubeflowv1alpha1.ConditionAccepted)
			return c != nil && c.Status == status && strings.Contains(c.Message, text), err
		})
	}
	created := func(name string) *corev1.Pod {
		t.Helper()
		pod := simplePod("connections", name)
		e.create(t, pod)
		return pod
	}
	sources := func(pod *corev1.Pod) (names []string) {
		for _, from := range pod.Spec.Containers[0].EnvFrom {
			names = append(names, from.SecretRef.Name)
		}
		return names
	}
	accepted(metav1.ConditionFalse, "apply the rights")
	without := created("without")
	if len(sources(without)) > 0 || without.Annotations[meta.DecisionsAnnotation] != "connections" || without.Annotations[meta.Mark("connections")] != "" {
		t.Errorf("without rights: got %v, %v", sources(without), without.Annotations)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("the server is not ready: %v", err)
	}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "connections-secrets"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: "sallyport"}},
	}
	e.create(t, role)
	e.create(t, binding)
	t.Cleanup(func() {
		_ = e.client.Delete(context.Background(), role)
		_ = e.client.Delete(context.Background(), binding)
	})
	accepted(metav1.ConditionTrue, "")
	first := created("first")
	mounts := first.Spec.Containers[0].VolumeMounts
	if !slices.Equal(sources(first), []string{"lake"}) ||
		!slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/connections/keys" && m.ReadOnly }) {
		t.Errorf("got %v, %v", sources(first), mounts)
	}
	for _, next := range []string{"bay", "creek", "delta"} {
		e.create(t, secret(next, env))
		if got := sources(created("with-" + next)); !slices.Contains(got, next) {
			t.Errorf("a pod right after the Secret %s: %v", next, got)
		}
		if err := e.client.Delete(t.Context(), secret(next, env)); err != nil {
			t.Fatal(err)
		}
		if got := sources(created("without-" + next)); !slices.Equal(got, []string{"lake"}) {
			t.Errorf("a pod right after the deletion of the Secret %s: %v", next, got)
		}
	}
	if got := sources(e.stored(t, simplePod(name, "with-bay"))); !slices.Contains(got, "bay") {
		t.Errorf("a running pod was changed: %v", got)
	}
	if strings.Contains(s.Log(), "hidden") {
		t.Error("the log has a value of a Secret")
	}
}
