// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// awaitPolicy waits until the webhook of a configuration has that failure policy.
func (e *env) awaitPolicy(t *testing.T, name string, policy admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	eventuallyWithin(t, 2*time.Minute, "failure policy "+string(policy), func(ctx context.Context) (bool, error) {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := e.client.Get(ctx, client.ObjectKey{Name: name}, configuration); err != nil {
			return false, err
		}
		for _, w := range configuration.Webhooks {
			if w.Name == poddefault.Name {
				return *w.FailurePolicy == policy, nil
			}
		}
		return false, nil
	})
}

// createAll creates pods n at a time, and returns the errors.
func (e *env) createAll(t *testing.T, pods []*corev1.Pod) []error {
	t.Helper()
	errs := make([]error, len(pods))
	next := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range next {
				errs[i] = e.client.Create(t.Context(), pods[i])
			}
		})
	}
	for i := range pods {
		next <- i
	}
	close(next)
	workers.Wait()
	return errs
}

// ownLabel is that of the server's own pods, by default.
const ownLabel = "app.kubernetes.io/name"

// testBackstop is the life of the policy that stands in for injection, with the rights
// that manifests prints.
func testBackstop(t *testing.T, e *env) {
	t.Parallel()
	name := e.namespace(t, "backstop")
	kubeconfig := e.serviceAccount(t, name)
	serve := func() *server {
		return e.serve(t, name, "--kubeconfig", kubeconfig, lab.Set("webhooks.poddefault.guard", "Backstop"), "--controllers", "poddefault-index")
	}
	s := serve()
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), meta.Mark("env"))
	e.create(t, podDefault(name, "tiers", kubeflowv1alpha1.PodDefaultSpec{
		Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}, {Key: "legacy", Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
		Env: []corev1.EnvVar{{Name: "TIER", Value: "1"}},
	}))
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	if text := s.metric(t, "sallyport_registration_backstop_in_force"); text != "1" {
		t.Errorf("the metric says %s", text)
	}
	out, err := e.doctor(t, name)
	if !strings.Contains(out, "the policy "+name+" stands in for it") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	injected := simplePod(name, "while-it-runs")
	injected.Labels[ownLabel] = "sallyport"
	e.create(t, injected)
	if len(injected.Spec.Containers[0].Env) != 1 {
		t.Error("a pod is not injected while the policy is in force")
	}
	eventually(t, "the index of both", func(ctx context.Context) (bool, error) { return e.indexed(ctx, name, 2) })
	// A param that the policy knows of is not yet one that it has: both must be refused once.
	s.Kill()
	for _, labels := range []map[string]string{{"use": "true"}, {"tier": "a"}} {
		eventually(t, "the policy to know of a PodDefault", func(ctx context.Context) (bool, error) {
			pod := simplePod(name, "probe")
			pod.Labels = labels
			return apierrors.IsForbidden(e.client.Create(ctx, pod, client.DryRunAll)), nil
		})
	}

	many := 40 * *times
	var matching, others []*corev1.Pod
	for i := range many {
		pod := simplePod(name, fmt.Sprintf("matching-%d", i))
		if i%2 == 1 {
			pod.Labels = map[string]string{"tier": []string{"a", "b"}[i/2%2]}
		}
		if i%5 == 0 { // that of the server's own pods, which means nothing here
			pod.Labels[ownLabel] = "sallyport"
		}
		matching = append(matching, pod)
		other := simplePod(name, fmt.Sprintf("other-%d", i))
		other.Labels = []map[string]string{nil, {"use": "false"}, {"tier": "c"}, {"tier": "a", "legacy": ""}}[i%4]
		others = append(others, other)
	}
	for i, err := range e.createAll(t, matching) {
		want := []string{"env", "tiers"}[i%2]
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "because Sallyport did not answer: "+want+".") {
			t.Fatalf("%s with %v: %v", matching[i].Name, matching[i].Labels, err)
		}
	}
	for i, err := range e.createAll(t, others) {
		if err != nil {
			t.Fatalf("%s with %v: %v", others[i].Name, others[i].Labels, err)
		}
	}
	excluded := simplePod(name, "excluded")
	excluded.Annotations = map[string]string{meta.ExcludeAnnotation: "true"}
	e.create(t, excluded)
	mirror := simplePod(name, "mirror")
	mirror.Annotations = map[string]string{meta.MirrorAnnotation: "x"}
	mirror.Spec.NodeName = "some-node"
	mirror.Spec.AutomountServiceAccountToken = nil
	e.create(t, mirror)

	// A policy may read another kind of parameter. Where the API server does not know that kind,
	// the policy refuses every pod.
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kind := `{"spec": {"paramKind": {"apiVersion": "example.com/v1", "kind": "Index"}}}`
	if err := e.client.Patch(t.Context(), policy, client.RawPatch(types.MergePatchType, []byte(kind))); err != nil {
		t.Fatal(err)
	}
	unselected := simplePod(name, "unselected")
	unselected.Labels = nil
	eventually(t, "every pod to be refused", func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, unselected.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "failed to find resource referenced by paramKind"), nil
	})

	// A server heals it: the webhook fails closed, the policy goes, and the new one comes.
	s = serve()
	eventuallyWithin(t, 2*time.Minute, "other pods to be admitted again", func(ctx context.Context) (bool, error) {
		err := e.client.Create(ctx, unselected.DeepCopy(), client.DryRunAll)
		return err == nil, err
	})
	eventually(t, "the log to say what happens", func(context.Context) (bool, error) {
		return strings.Contains(s.Log(), "its policy reads objects of kind Index and is removed first"), nil
	})
	eventuallyWithin(t, 2*time.Minute, "the server's own policy", func(ctx context.Context) (bool, error) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		err := e.client.Get(ctx, client.ObjectKey{Name: name}, policy)
		return err == nil && policy.Spec.ParamKind.Kind == "PodTemplate", client.IgnoreNotFound(err)
	})
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	again := simplePod(name, "again")
	e.create(t, again)
	if len(again.Spec.Containers[0].Env) != 1 {
		t.Error("a pod is not injected after all that")
	}
	if strings.Contains(s.Log(), "forbidden") {
		t.Errorf("the server lacks a right:\n%s", s.Log())
	}

	// The other way round: the webhook fails closed, and then the policy goes.
	s.stop(t)
	s = e.serve(t, name, "--kubeconfig", kubeconfig)
	e.awaitPolicy(t, name, admissionregistrationv1.Fail)
	eventually(t, "the policy to go", func(context.Context) (bool, error) {
		return e.gone(t, client.ObjectKey{Name: name}, &admissionregistrationv1.ValidatingAdmissionPolicy{}) &&
			e.gone(t, client.ObjectKey{Name: name}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}), nil
	})
	s.stop(t)
	s = serve()
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	s.stop(t)
	out, err = e.command(t, "uninstall", "--kubeconfig", e.kubeconfig, "--configuration-name", name, "--force", "--yes")
	want := []string{"validatingadmissionpolicybinding.admissionregistration.k8s.io/" + name + " deleted", "validatingadmissionpolicy.admissionregistration.k8s.io/" + name + " deleted",
		"mutatingwebhookconfiguration.admissionregistration.k8s.io/" + name + " deleted"}
	if err != nil || !strings.HasPrefix(out, strings.Join(want, "\n")+"\n") || !strings.Contains(out, "podtemplates of ") {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
}

// indexed tells whether a namespace has an index of so many objects.
func (e *env) indexed(ctx context.Context, namespace string, objects int) (bool, error) {
	template := &corev1.PodTemplate{}
	err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: backstop.TemplateName}, template)
	return template.Annotations["sallyport.io/objects"] == fmt.Sprint(objects), err
}

// serviceAccount applies the rights that manifests prints, and returns a kubeconfig with
// these and no others.
func (e *env) serviceAccount(t *testing.T, name string, flags ...string) string {
	t.Helper()
	printed, err := exec.CommandContext(t.Context(), e.binary, append([]string{"manifests", "--service", name + "/webhooks", "--configuration-name", name,
		"--part", "rbac"}, flags...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	apply := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "--kubeconfig", e.kubeconfig, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(string(printed))
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	config := rest.CopyConfig(e.config)
	config.Impersonate.UserName = "system:serviceaccount:" + name + ":sallyport"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + name, "system:authenticated"}
	return sallyporttest.Kubeconfig(t, config)
}

// eventuallyWithin is [eventually] for what takes longer.
func eventuallyWithin(t *testing.T, limit time.Duration, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	lab.Eventually(t.Context(), t, limit, what, condition)
}
