// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestARestartIntoAFailureIsRefusedOnARealAPIServer has workloads with a running pod that is older than a PodDefault. It
// has an API server of its own because the definitions are for all.
func TestARestartIntoAFailureIsRefusedOnARealAPIServer(t *testing.T) {
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	operator := rest.CopyConfig(config)
	operator.Impersonate.UserName = "operator"
	_, errRole := clients.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}, {APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"patch"}},
	}}, metav1.CreateOptions{})
	_, errBinding := clients.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "operator"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator"}},
	}, metav1.CreateOptions{})
	if err := errors.Join(errRole, errBinding); err != nil {
		t.Fatal(err)
	}
	const (
		restarted = "would be restarted (dry run)"
		refused   = "not restarted: its new pods would be refused by API server: "
	)
	class := `"priorityClassName": "missing"`
	cpu := `"resources": {"requests": {"cpu": "1"}}`
	env := `"env": [{"name": "A", "value": "1"}]`
	full := func(name corev1.ResourceName, used, hard string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(hard)}}, Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{name: resource.MustParse(hard)}, Used: corev1.ResourceList{name: resource.MustParse(used)},
		}}
	}
	for i, tc := range []struct {
		name, kind, spec string
		quota            *corev1.ResourceQuota
		config           *rest.Config
		args             []string
		status           int
		want             []string
	}{
		{"a class that does not exist", "Deployment", class, nil, config, nil, exitError,
			[]string{refused, "no PriorityClass with name missing was found; spec.priorityClassName comes from PodDefault", "Correct that first, or restart it anyway with --force"}},
		{"with --force, none is asked", "Deployment", class, nil, config, []string{"--force"}, exitFound, []string{restarted}},
		{"no objection", "Deployment", env, nil, config, nil, exitFound, []string{restarted}},
		{"a user who may not create pods", "Deployment", env, nil, operator, nil, exitError,
			[]string{"not restarted: of its new pods, whether the API server accepts it is not known: ", `cannot create resource "pods"`, "--force"}},
		{"a user who may not create pods, with --force", "Deployment", env, nil, operator, []string{"--force"}, exitFound, []string{restarted}},
		{"a full quota, and pods that begin before others end", "Deployment", env, full("pods", "1", "1"), config, nil, exitError, []string{refused, "exceeded quota: full"}},
		{"a full quota, and pods that end before others begin", "StatefulSet", env, full("pods", "1", "1"), config, nil, exitFound, []string{restarted}},
		{"a quota that is lower than the use", "StatefulSet", env, full("pods", "2", "1"), config, nil, exitError, []string{refused, "exceeded quota: full"}},
		{"a quota of nothing", "StatefulSet", env, full("pods", "0", "0"), config, nil, exitError, []string{refused, "exceeded quota: full"}},
		{"a full quota, and pods that request more", "StatefulSet", cpu, full("requests.cpu", "1500m", "2"), config, nil, exitError, []string{refused, "exceeded quota: full"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			namespace := fmt.Sprintf("restart-%d", i)
			if _, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			runWorkload(t, clients, namespace, tc.kind)
			text := `{"apiVersion": "kubeflow.org/v1alpha1", "kind": "PodDefault", "metadata": {"name": "late"}, "spec": {"selector": {"matchLabels": {"use": "true"}}, ` + tc.spec + `}}`
			if _, err := clients.Discovery().RESTClient().Post().AbsPath("/apis/kubeflow.org/v1alpha1/namespaces/" + namespace + "/poddefaults").Body([]byte(text)).DoRaw(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.quota != nil {
				fillQuota(t, clients, namespace, tc.quota)
			}
			args := append([]string{"rollout", "restart", "-n", namespace, "--yes", "--dry-run", "--kubeconfig", sallyporttest.Kubeconfig(t, tc.config)}, tc.args...)
			got := sallyport(t, args...)
			if got.status != tc.status {
				t.Errorf("status %d, want %d", got.status, tc.status)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("no %q in\n%s", want, got.stderr)
				}
			}
		})
	}
}

// runWorkload creates a workload with a running pod, as its controller and a node would.
func runWorkload(t *testing.T, clients kubernetes.Interface, namespace, kind string) {
	t.Helper()
	labels := map[string]string{"use": "true"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	controlled := func(kind string, by *metav1.ObjectMeta) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: by.Name, UID: by.UID, Controller: new(true)}}
	}
	var owner []metav1.OwnerReference
	if kind == "StatefulSet" {
		set, err := clients.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owner = controlled(kind, &set.ObjectMeta)
	} else {
		deployment, err := clients.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		set, err := clients.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", OwnerReferences: controlled(kind, &deployment.ObjectMeta)}, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owner = controlled("ReplicaSet", &set.ObjectMeta)
	}
	pod, err := clients.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: labels, OwnerReferences: owner}, Spec: template.Spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err := clients.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// fillQuota creates a quota with its status, which a controller would write.
func fillQuota(t *testing.T, clients kubernetes.Interface, namespace string, quota *corev1.ResourceQuota) {
	t.Helper()
	created, err := clients.CoreV1().ResourceQuotas(namespace).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status = quota.Status
	if _, err := clients.CoreV1().ResourceQuotas(namespace).UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	probe, err := json.Marshal(corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t.Context(), t, time.Minute, "the quota to be in force", func(ctx context.Context) (bool, error) {
		err := clients.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/"+namespace+"/pods").Param("dryRun", "All").Body(probe).Do(ctx).Error()
		return err != nil && strings.Contains(err.Error(), "exceeded quota: full"), nil
	})
}
