// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// changers are what the webhooks of testReinvocation do to a pod.
var changers = map[string]func(*corev1.Pod){
	"nothing":       func(*corev1.Pod) {},
	"label-a":       func(pod *corev1.Pod) { pod.Labels["a"] = "true" },
	"label-b-for-a": func(pod *corev1.Pod) { copyLabel(pod, "a", "b") },
	"quarrel-yes":   func(pod *corev1.Pod) { pod.Labels["quarrel"] = "yes" },
	"quarrel-no":    func(pod *corev1.Pod) { pod.Labels["quarrel"] = "no" },
	"urgent":        func(pod *corev1.Pod) { setPriorityClass(pod, "urgent") },
	"unknown-class": func(pod *corev1.Pod) { setPriorityClass(pod, "unknown") },
}

func copyLabel(pod *corev1.Pod, from, to string) {
	if value, ok := pod.Labels[from]; ok {
		pod.Labels[to] = value
	}
}

// setPriorityClass leaves it to the API server's own plugin to fill in the priority.
func setPriorityClass(pod *corev1.Pod, class string) {
	if pod.Spec.PriorityClassName != class {
		pod.Spec.PriorityClassName, pod.Spec.Priority = class, nil
	}
}

func testReinvocation(t *testing.T, w *world) {
	for name, value := range map[string]int32{"relaxed": 1, "urgent": 10} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := w.clients.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const never, ifNeeded = admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy
	for i, tc := range []struct {
		name     string
		policy   admissionregistrationv1.ReinvocationPolicyType
		webhooks []string // of changers, in the order of the configuration
		only     map[string]string
		calls    []int // of each
		labels   map[string]string
		priority int32
		refused  string
	}{
		{name: "who changes nothing is called once", policy: ifNeeded, webhooks: []string{"nothing"}, calls: []int{1}},
		{name: "nobody is called again for a change of its own", policy: ifNeeded, webhooks: []string{"label-a"}, calls: []int{1}, labels: map[string]string{"a": "true"}},
		{name: "who comes before a change is called again, who made it is not", policy: ifNeeded,
			webhooks: []string{"label-a", "label-b-for-a"}, calls: []int{2, 1}, labels: map[string]string{"a": "true", "b": "true"}},
		{name: "what the second call changes calls the next again, and there it ends", policy: ifNeeded,
			webhooks: []string{"quarrel-yes", "quarrel-no"}, calls: []int{2, 2}, labels: map[string]string{"quarrel": "no"}},
		{name: "who was not called at first is not called later, though it would match", policy: ifNeeded,
			webhooks: []string{"label-b-for-a", "label-a"}, only: map[string]string{"a": "true"}, calls: []int{0, 1}, labels: map[string]string{"a": "true"}},
		{name: "a change of the API server's own plugins counts", policy: ifNeeded, webhooks: []string{"urgent"}, calls: []int{2}, priority: 10},
		{name: "a plugin refuses what a webhook makes of a pod", policy: ifNeeded, webhooks: []string{"unknown-class"}, calls: []int{1}, refused: "unknown"},
		{name: "with the policy Never nobody is called again", policy: never,
			webhooks: []string{"label-b-for-a", "label-a"}, calls: []int{1, 1}, labels: map[string]string{"a": "true"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("reinvocation-%d", i)
			calls := &journal[struct{}]{}
			var webhooks []admission.Webhook
			for n, changer := range tc.webhooks {
				change := admission.Mutate(func(_ context.Context, pod *corev1.Pod) error { changers[changer](pod); return nil })
				webhook := admission.Webhook{
					Name: fmt.Sprintf("%s.%d.sallyport.io", changer, n), Path: "/" + changer, Type: admission.TypeMutating,
					Rules:             admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), admissionregistrationv1.Create),
					NamespaceSelector: within(name), ReinvocationPolicy: tc.policy, TimeoutSeconds: 30, AllowWedge: "only a namespace of the test",
					Handler: admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
						calls.note(changer, struct{}{})
						return change.Handle(ctx, req)
					}),
				}
				if n == 0 && tc.only != nil {
					webhook.ObjectSelector = &metav1.LabelSelector{MatchLabels: tc.only}
				}
				webhooks = append(webhooks, webhook)
			}
			w.namespace(t, name)
			w.serve(t, name, webhooks, nil)
			pod := simplePod(name, "pod")
			pod.Spec.PriorityClassName = "relaxed"
			pod, err := w.clients.CoreV1().Pods(name).Create(t.Context(), pod, metav1.CreateOptions{})
			if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Fatalf("the request ended with %v, want %q", err, tc.refused)
			}
			for n, changer := range tc.webhooks {
				if got := calls.peek(changer); got != tc.calls[n] {
					t.Errorf("%s was called %d times, want %d", changer, got, tc.calls[n])
				}
			}
			if err != nil {
				return
			}
			want := map[string]string{"use": "true"}
			maps.Copy(want, tc.labels)
			if !maps.Equal(pod.Labels, want) {
				t.Errorf("labels are %v, want %v", pod.Labels, want)
			}
			if priority := max(tc.priority, 1); pod.Spec.Priority == nil || *pod.Spec.Priority != priority {
				t.Errorf("the priority is %v, want %d", pod.Spec.Priority, priority)
			}
		})
	}
}
