// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/store"
	"github.com/sallyport-io/sallyport/test/lab"
)

// runPod creates a pod of a ReplicaSet as if the kubelet had run it.
func runPod(t *testing.T, clients kubernetes.Interface, pod metav1.ObjectMeta, owner string, fails bool) {
	t.Helper()
	pod.Labels = map[string]string{"use": "true", "pod-template-hash": "5d8f"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: "u", Controller: new(true)}}
	pods := clients.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: pod,
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}, AutomountServiceAccountToken: new(false)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := corev1.ContainerStatus{Name: "main", Image: "x", Ready: true}
	if fails {
		status = corev1.ContainerStatus{Name: "main", Image: "x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	}
	created.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if _, err := pods.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := pods.Delete(context.WithoutCancel(t.Context()), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// testClusterRollout promotes a ClusterPodDefault whose steps include two namespaces, while
// pods fail in them and elsewhere. All steps include the same pods, and a promotion looks at
// their health.
func testClusterRollout(t *testing.T, config *rest.Config, clients kubernetes.Interface) {
	for name, canary := range map[string]string{"canary-a": "true", "canary-b": "true", "tenant-a": "false", "tenant-b": "false"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"canary": canary}}}
		if _, err := clients.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	client, err := store.Client(config, sallyportv1alpha1.GroupVersion, sallyportv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	run(t, config, true)
	const resource, name = sallyportv1alpha1.ClusterPodDefaultResource, "canaried"
	await := func(what string, ok func(*sallyportv1alpha1.ClusterPodDefault) bool) (cpd *sallyportv1alpha1.ClusterPodDefault) {
		t.Helper()
		lab.Eventually(t.Context(), t, patience, what, func(ctx context.Context) (bool, error) {
			cpd = &sallyportv1alpha1.ClusterPodDefault{}
			if err := client.Get().Resource(resource).Name(name).Do(ctx).Into(cpd); err != nil {
				return false, err
			}
			if !ok(cpd) {
				return false, fmt.Errorf("its status is %+v", cpd.Status)
			}
			return true, nil
		})
		return cpd
	}
	patch := func(spec string) {
		t.Helper()
		if err := client.Patch(types.MergePatchType).Resource(resource).Name(name).Body([]byte(`{"spec":` + spec + `}`)).Do(t.Context()).Error(); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
	}
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cpd.APIVersion, cpd.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.ClusterPodDefaultKind
	cpd.Spec.PodDefaultSpec = envSpec("use", "one")
	if err := client.Post().Resource(resource).Body(cpd).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	first := await("the first revision", func(cpd *sallyportv1alpha1.ClusterPodDefault) bool { return cpd.Status.CurrentRevision != "" }).Status.CurrentRevision
	const step = `{"namespaceSelector":{"matchLabels":{"canary":"true"}}}`
	patch(`{"env":[{"name":"HTTP_PROXY","value":"two"}],"rollout":{"steps":[` + strings.Repeat(step+",", 3) + step + `]}}`)
	awaitStep := func(step int32) *sallyportv1alpha1.ClusterPodDefault {
		t.Helper()
		return await(fmt.Sprint("step ", step), func(cpd *sallyportv1alpha1.ClusterPodDefault) bool {
			return cpd.Status.Rollout != nil && cpd.Status.Rollout.Step == step && cpd.Status.CurrentRevision != first
		})
	}
	second := awaitStep(1).Status.CurrentRevision
	pods := 0
	runs := func(namespace string, n int, fails bool) {
		t.Helper()
		for range n {
			pods++
			runPod(t, clients, metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("pod-", pods), Annotations: map[string]string{
				meta.ClusterMark(name): "1", meta.RevisionsAnnotation: meta.ClusterDecision + name + "@" + second,
			}}, fmt.Sprintf("web-%d-5d8f", pods), fails)
		}
	}
	promoted := func(what string, step int32, health metav1.ConditionStatus) {
		t.Helper()
		patch(fmt.Sprintf(`{"rollout":{"promotion":{"revision":%q,"step":%d}}}`, second, step))
		conditions := awaitStep(step).Status.Conditions
		if !apimeta.IsStatusConditionPresentAndEqual(conditions, kubeflowv1alpha1.ConditionRolloutHealthy, health) {
			t.Errorf("%s: %+v", what, conditions)
		}
	}

	runs("tenant-a", 1, true)
	promoted("a pod that only says that it is in the step", 2, metav1.ConditionUnknown)
	runs("canary-a", 1, false)
	runs("canary-b", 1, false)
	runs("tenant-a", 4, true)
	runs("tenant-b", 4, true)
	promoted("pods of several tenants that only say so", 3, metav1.ConditionTrue)
	runs("canary-a", 5, true)
	promoted("pods of one namespace in the step", 4, metav1.ConditionTrue)
	runs("canary-b", 1, true)
	patch(fmt.Sprintf(`{"rollout":{"promotion":{"revision":%q,"step":null}}}`, second)) // of the whole
	failing := await("the condition", func(cpd *sallyportv1alpha1.ClusterPodDefault) bool {
		return apimeta.IsStatusConditionFalse(cpd.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy)
	})
	if state := failing.Status.Rollout; state.Step != 4 || state.StableRevision != first {
		t.Errorf("it is promoted although pods of two namespaces fail: %+v", state)
	}
	if message := apimeta.FindStatusCondition(failing.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy).Message; !strings.Contains(message, "6 of 8 pods") {
		t.Errorf("message: %s", message)
	}
	if err := client.Delete().Resource(resource).Name(name).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}
