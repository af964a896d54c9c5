// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testFullIndex has a tenant who fills the index of the own namespace. While no server answers,
// ClusterPodDefaults still hold, and pods that the policy cannot judge are rejected.
func testFullIndex(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "fullindex")
	s := e.serve(t, name, "--kubeconfig", e.serviceAccount(t, name), lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index,poddefault-status")
	everywhere := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "zz-" + name}}
	everywhere.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
	everywhere.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"proxy": "true"}}
	everywhere.Spec.Env = []corev1.EnvVar{{Name: "PROXY", Value: "x"}}
	e.createInCluster(t, everywhere)

	e.grant(t, name, "filler-"+name, writePods, writeDefaults)
	tenant := e.user(t, "filler-"+name)
	const objects = 150
	for i := range objects {
		selector := metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprintf("greedy-%03d", i): "true"}}
		for j := range 60 {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: fmt.Sprintf("not-%d", j), Operator: metav1.LabelSelectorOpNotIn, Values: []string{strings.Repeat("x", 60), strings.Repeat("y", 60)},
			})
		}
		pd := podDefault(name, fmt.Sprintf("a-%03d", i), kubeflowv1alpha1.PodDefaultSpec{Selector: selector, Env: []corev1.EnvVar{{Name: "GREEDY", Value: "x"}}})
		if err := tenant.Create(t.Context(), pd); err != nil {
			t.Fatal(err)
		}
	}
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	last := fmt.Sprintf("a-%03d", objects-1)
	eventually(t, "the status of one without room", func(ctx context.Context) (bool, error) {
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: last}, pd); err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(pd.Status.Conditions, kubeflowv1alpha1.ConditionAccepted)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "NoRoomInIndex" && strings.Contains(c.Message, name), nil
	})
	if text := s.metric(t, "sallyport_poddefault_index_omitted"); text == "0" || text == "" {
		t.Errorf("the metric of objects without room is %q", text)
	}
	labelled := func(pod, key string) *corev1.Pod {
		p := simplePod(name, pod)
		p.Labels = nil
		if key != "" {
			p.Labels = map[string]string{key: "true"}
		}
		return p
	}
	injected := labelled("injected", "greedy-"+strings.TrimPrefix(last, "a-"))
	e.create(t, injected)
	if len(injected.Spec.Containers[0].Env) != 1 {
		t.Error("a pod of an object without room is not injected while a server answers")
	}

	s.Kill()
	for key, want := range map[string]string{
		"proxy":      "because Sallyport did not answer: cluster/zz-" + name,
		"greedy-000": "because Sallyport did not answer: a-000",
		"greedy-" + strings.TrimPrefix(last, "a-"): "perhaps one of those that are too many for the index",
	} {
		var err error
		eventually(t, "a pod with the label "+key+" to be rejected", func(ctx context.Context) (bool, error) {
			err = e.client.Create(ctx, labelled("probe", key), client.DryRunAll)
			return apierrors.IsForbidden(err), nil
		})
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	e.create(t, labelled("unselected", ""))
	e.create(t, labelled("another-label", "app"))
}
