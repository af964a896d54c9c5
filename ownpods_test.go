// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/test/lab"
)

// The API server evaluates the condition that excludes the server's own pods from a webhook,
// in a shared namespace. The webhook has no server and fails closed, so the API server
// refuses every pod that the condition does not exclude. The label alone does not exclude
// pods of other namespaces.
func TestOwnPodsAreLeftAloneOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	client := kubernetes.NewForConfigOrDie(config)
	shared, other := lab.Namespace(t, config), lab.Namespace(t, config)
	settings := registration.Settings{
		Service: &registration.Service{Namespace: shared, Name: "webhooks"}, SharedNamespace: true, OwnPods: "app=webhooks", AllowWedge: "a test",
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{shared, other}},
		}},
	}
	neverCalled := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return nil, errors.New("never called")
	})
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), admissionregistrationv1.Create, admissionregistrationv1.Delete)
	// The endpoint of the test: a port without a listener.
	manifests := func(w admission.Webhook) any {
		t.Helper()
		webhooks, err := hosting.Apply(&settings, []admission.Webhook{w})
		if err != nil {
			t.Fatal(err)
		}
		objects, err := registration.Manifests(registration.Config{Name: "own-pods", Endpoint: registration.Endpoint{URL: "https://127.0.0.1:1"}}, webhooks, nil)
		if err != nil || len(objects) != 1 {
			t.Fatalf("%v, %v", objects, err)
		}
		return objects[0]
	}
	pod := func(name, label string) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": label}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if label == "" {
			pod.Labels = nil
		}
		return pod
	}
	before := pod("not-ours", "other")
	if _, err := client.CoreV1().Pods(shared).Create(t.Context(), before, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	configuration := manifests(admission.Validating("pods.example.com", pods, neverCalled)).(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	unregisterAtEnd(t, config, configuration.Name)
	create := func(ctx context.Context, namespace string, pod *corev1.Pod, dryRun ...string) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	refused := func(err error) bool { return err != nil && strings.Contains(err.Error(), "pods.example.com") }
	for !refused(create(t.Context(), other, pod("probe", ""), metav1.DryRunAll)) { // until the API server has seen it
		if t.Context().Err() != nil {
			t.Fatal("the webhook is not asked")
		}
	}
	table := []struct {
		name, namespace, label string
		asked                  bool
	}{
		{"own pod", shared, "webhooks", false},
		{"another's pod", shared, "other", true},
		{"pod without labels", shared, "", true},
		{"pod of another namespace with the label", other, "webhooks", true},
	}
	for _, tc := range table {
		t.Run(tc.name, func(t *testing.T) {
			if err := create(t.Context(), tc.namespace, pod("created", tc.label)); refused(err) != tc.asked || (err != nil && !refused(err)) {
				t.Errorf("asked should be %v: %v", tc.asked, err)
			}
		})
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := client.CoreV1().Pods(shared).Delete(t.Context(), "created", now); err != nil {
		t.Errorf("deletion of an own pod: %v", err)
	}
	if err := client.CoreV1().Pods(shared).Delete(t.Context(), "not-ours", now); !refused(err) {
		t.Errorf("deletion of another's pod: %v", err)
	}

	mutating := manifests(admission.Mutating("pods.example.com", pods, neverCalled)).(*admissionregistrationv1.MutatingWebhookConfiguration)
	api := client.AdmissionregistrationV1()
	if err := api.ValidatingWebhookConfigurations().Delete(t.Context(), configuration.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for refused(create(t.Context(), other, pod("probe", ""), metav1.DryRunAll)) {
		if t.Context().Err() != nil {
			t.Fatal("the webhook is still asked")
		}
	}
	if _, err := api.MutatingWebhookConfigurations().Create(t.Context(), mutating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	unregisterAtEnd(t, config, mutating.Name)
	for !refused(create(t.Context(), other, pod("probe", ""), metav1.DryRunAll)) {
		if t.Context().Err() != nil {
			t.Fatal("the mutating webhook is not asked")
		}
	}
	for _, tc := range table {
		t.Run("mutating: "+tc.name, func(t *testing.T) {
			if err := create(t.Context(), tc.namespace, pod("mutated", tc.label), metav1.DryRunAll); refused(err) != tc.asked || (err != nil && !refused(err)) {
				t.Errorf("asked should be %v: %v", tc.asked, err)
			}
		})
	}
}

// The policy that stands in for a webhook excludes the same pods.
func TestOwnPodsAreLeftAloneByThePolicy(t *testing.T) {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), admissionregistrationv1.Create)
	for _, shared := range []bool{false, true} {
		settings := registration.Settings{Service: &registration.Service{Namespace: "home", Name: "webhooks"}, SharedNamespace: shared, OwnPods: "app=webhooks", AllowWedge: "a test"}
		w := admission.Mutating("pods.example.com", pods, admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
			return admission.Allowed(), nil
		}))
		w.Backstop = &admission.Backstop{Disabled: true}
		applied, err := hosting.Apply(&settings, []admission.Webhook{w})
		if err != nil {
			t.Fatal(err)
		}
		if got := applied[0]; got.ObjectSelector != nil || len(got.MatchConditions) != len(got.Backstop.MatchConditions) || (len(got.MatchConditions) == 1) != shared {
			t.Errorf("namespace shared: %t: %+v, %+v, %+v", shared, got.ObjectSelector, got.MatchConditions, got.Backstop.MatchConditions)
		}
		if len(w.Backstop.MatchConditions) > 0 {
			t.Error("the definition was changed")
		}
	}
}
