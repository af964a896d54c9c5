// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

const hostPathYAML = `apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: host, namespace: secured}
spec:
  selector: {matchLabels: {use: "true"}}
  volumes: [{name: host, hostPath: {path: /data}}]
  volumeMounts: [{name: host, mountPath: /data}]
`

// TestCommandsAskPodSecurityOnARealAPIServer has a namespace with the level baseline, and a PodDefault that it
// does not admit. It has an API server of its own because the definitions are for all.
func TestCommandsAskPodSecurityOnARealAPIServer(t *testing.T) {
	crds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(crds...))
	kubeconfig := sallyporttest.Kubeconfig(t, config)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{"secured": {"pod-security.kubernetes.io/enforce": "baseline"}, "open": nil} {
		if _, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"use": "true"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}}
		if _, err := clients.AppsV1().Deployments(name).Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	in := func(namespace string) string { return strings.Replace(hostPathYAML, "secured", namespace, 1) }
	for namespace, want := range map[string]struct {
		status int
		text   string
	}{"secured": {exitDenied, "1 would be denied"}, "open": {exitOK, "1 of 1 workloads would change"}} {
		got := sallyportWith(t, in(namespace), "preview", "-n", namespace, "-f", "-", "--kubeconfig", kubeconfig)
		if all := got.stdout + got.stderr; got.status != want.status || !strings.Contains(all, want.text) {
			t.Errorf("preview in %s: %+v", namespace, got)
		}
		if _, err := clients.Discovery().RESTClient().Post().AbsPath("/apis/kubeflow.org/v1alpha1/namespaces/"+namespace+"/poddefaults").
			SetHeader("Content-Type", "application/yaml").Body([]byte(in(namespace))).DoRaw(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"diff", "explain"} {
			got := sallyport(t, command, "deployment/web", "-n", namespace, "--kubeconfig", kubeconfig)
			if all := got.stdout + got.stderr; got.status != want.status || (want.status == exitDenied) != (strings.Contains(all, `violates PodSecurity "baseline:latest"`) && strings.Contains(all, "PodDefault secured/host")) {
				t.Errorf("%s in %s: %+v", command, namespace, got)
			}
		}
	}
	// A pod of before the PodDefault, of a ReplicaSet of the Deployment.
	controlled := func(kind, name string, uid *metav1.ObjectMeta) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid.UID, Controller: new(true)}}
	}
	deployment, err := clients.AppsV1().Deployments("secured").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := clients.AppsV1().ReplicaSets("secured").Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", OwnerReferences: controlled("Deployment", "web", &deployment.ObjectMeta)},
		Spec:       appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod, err := clients.CoreV1().Pods("secured").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1-a", Labels: map[string]string{"use": "true"}, OwnerReferences: controlled("ReplicaSet", "web-1", &set.ObjectMeta)}, Spec: deployment.Spec.Template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err := clients.CoreV1().Pods("secured").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := sallyport(t, "rollout", "restart", "-n", "secured", "--yes", "--kubeconfig", kubeconfig)
	if got.status != exitError || !strings.Contains(got.stderr, "not restarted: its new pods would be refused by PodSecurity") {
		t.Errorf("drift: %+v", got)
	}
	after, err := clients.AppsV1().Deployments("secured").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || len(after.Spec.Template.Annotations) > 0 {
		t.Errorf("it was restarted: %v, %v", err, after)
	}
	// Where the namespace is changed later, the controller says that it cannot create the pods.
	if _, err := clients.CoreV1().Namespaces().Patch(t.Context(), "secured", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	after.Status = appsv1.DeploymentStatus{ObservedGeneration: 1000, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: few"}}}
	if _, err := clients.AppsV1().Deployments("secured").UpdateStatus(t.Context(), after, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := sallyport(t, "rollout", "restart", "-n", "secured", "--yes", "--kubeconfig", kubeconfig); got.status != exitError || !strings.Contains(got.stderr, "its pods cannot be created: exceeded quota: few") {
		t.Errorf("drift of pods that cannot be created: %+v", got)
	}
}
