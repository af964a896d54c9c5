// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// testNarrow comes before there are other PodDefaults: the keys are those of all.
func testNarrow(t *testing.T, e *env) {
	w := &world{config: e.config}
	var err error
	if w.clients, err = kubernetes.NewForConfig(e.config); err != nil {
		t.Fatal(err)
	}

	name := e.namespace(t, "narrow")
	args, err := lab.Arguments(t.TempDir(), "serve", "--url", "https://127.0.0.1:9443", lab.Set("webhooks.poddefault", "{narrow: true, freshness: "+poddefault.Consistent+"}"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.command(t, args...)
	if err == nil || !strings.Contains(out, "settings.narrow: Forbidden: not with the freshness Consistent") {
		t.Errorf("with Consistent it ends with %v\n%s", err, out)
	}

	s := e.serve(t, name, lab.Set("webhooks.poddefault.narrow", "true"), lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`))
	e.awaitCondition(t, name, "false") // nothing selects
	e.awaitCalled(t, s, labelled(name, "use", "true"), false)

	// A new key is followed, and a pod without it is not sent. What has to happen before is
	// awaited by the mark.
	e.createSoon(t, envPodDefault(name, "by-use"), labelled(name, "use", "true"), meta.Mark("by-use"))
	e.awaitCondition(t, name, "['use']")
	e.awaitCalled(t, s, labelled(name, "", ""), false)
	e.awaitCalled(t, s, labelled(name, "tier", "a"), false)
	e.awaitCalled(t, s, labelled(name, "use", "false"), true) // of the keys, values do not count
	byTier := podDefault(name, "by-tier", kubeflowv1alpha1.PodDefaultSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}}})
	e.createSoon(t, byTier, labelled(name, "tier", "a"), meta.Mark("by-tier"))
	e.awaitCondition(t, name, "['tier', 'use']")
	e.awaitCalled(t, s, labelled(name, "other", ""), false)

	// An object that needs no label switches it off for as long as it is there.
	every := podDefault(name, "every", kubeflowv1alpha1.PodDefaultSpec{Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "legacy", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}})
	e.createSoon(t, every, labelled(name, "", ""), meta.Mark("every"))
	for _, object := range []client.Object{every, byTier} {
		if err := e.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	e.awaitCondition(t, name, "['use']")
	e.awaitCalled(t, s, labelled(name, "tier", "a"), false)

	// The first cost: a new key counts when the configuration has it, and nobody writes it
	// while no server is there. Pods with the old key are refused meanwhile.
	s.Kill()
	e.create(t, podDefault(name, "by-new", kubeflowv1alpha1.PodDefaultSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"new": "true"}}}))
	if pod := labelled(name, "new", "true"); e.client.Create(t.Context(), pod, client.DryRunAll) != nil || pod.Annotations[meta.Mark("by-new")] != "" {
		t.Error("a pod with a label that is new was sent")
	}
	if err := e.client.Create(t.Context(), labelled(name, "use", "true"), client.DryRunAll); err == nil {
		t.Error("a pod with a label that is known was not sent")
	}
	s = e.serve(t, name, lab.Set("webhooks.poddefault.narrow", "true"), lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`))
	e.awaitCondition(t, name, "['new', 'use']")

	// The second cost: what a webhook behind adds comes too late for one that was not
	// called before it.
	w.serve(t, "z-"+name, []admission.Webhook{{
		Name: "label.z.sallyport.io", Path: "/label", Type: admission.TypeMutating,
		Rules:             admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), admissionregistrationv1.Create),
		NamespaceSelector: within(name), TimeoutSeconds: 30, AllowWedge: "only a namespace of the test",
		Handler: admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			pod.Labels = map[string]string{"use": "true"}
			return nil
		}),
	}}, nil)
	late := labelled(name, "", "")
	if err := e.client.Create(t.Context(), late, client.DryRunAll); err != nil || late.Labels["use"] != "true" || late.Annotations[meta.Mark("by-use")] != "" {
		t.Errorf("a label that comes late has the pod %v (%v)", late.Annotations, err)
	}
	s.stop(t)
	s = e.serve(t, name)
	eventually(t, "the pod to be injected without the condition", func(ctx context.Context) (bool, error) {
		pod := labelled(name, "", "")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return pod.Annotations[meta.Mark("by-use")] != "", err
	})
	s.stop(t)
	e.serve(t, name, lab.Set("webhooks.poddefault.narrow", "true"), lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index")
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	eventuallyWithin(t, 2*time.Minute, "the policy to refuse what comes too late", func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(e.client.Create(ctx, labelled(name, "", ""), client.DryRunAll)), nil
	})
	early := labelled(name, "use", "true")
	if err := e.client.Create(t.Context(), early, client.DryRunAll); err != nil || early.Annotations[meta.Mark("by-use")] == "" {
		t.Errorf("a pod that has the label of its own: %v (%v)", early.Annotations, err)
	}
}

// labelled is a pod with one label, or with none if there is no key.
func labelled(namespace, key, value string) *corev1.Pod {
	pod := simplePod(namespace, "labelled")
	pod.Labels = nil
	if key != "" {
		pod.Labels = map[string]string{key: value}
	}
	return pod
}

// awaitCondition waits until the condition that narrows the webhook has that text in it.
func (e *env) awaitCondition(t *testing.T, name, text string) {
	t.Helper()
	eventually(t, "the condition "+text, func(ctx context.Context) (bool, error) {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := e.client.Get(ctx, client.ObjectKey{Name: name}, configuration); err != nil {
			return false, err
		}
		for _, webhook := range configuration.Webhooks {
			for _, condition := range webhook.MatchConditions {
				if webhook.Name == poddefault.Name && condition.Name == poddefault.NarrowCondition {
					return strings.Contains(condition.Expression, text), nil
				}
			}
		}
		return false, nil
	})
}

// awaitCalled waits until the API server, which learns of configurations a moment after
// they are stored, sends such a pod, or does not.
func (e *env) awaitCalled(t *testing.T, s *server, pod *corev1.Pod, called bool) {
	t.Helper()
	calls := func() (n int) {
		for _, outcome := range []string{"allowed", "patched", "denied", "rejected", "failed"} {
			count, err := strconv.Atoi(s.metric(t, `sallyport_admission_reviews_total{outcome="`+outcome+`",webhook="`+poddefault.Name+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			n += count
		}
		return n
	}
	eventually(t, "such pods to be sent, or not", func(ctx context.Context) (bool, error) {
		before := calls()
		if err := e.client.Create(ctx, pod.DeepCopy(), client.DryRunAll); err != nil {
			return false, err
		}
		return (calls() > before) == called, nil
	})
}
