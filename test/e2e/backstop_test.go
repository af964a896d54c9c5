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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/processtest"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/backstop"
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

// testBackstop is the life of the policy that stands in for injection, with the rights
// that manifests prints.
func testBackstop(t *testing.T, e *env) {
	name := e.namespace(t, "backstop")
	kubeconfig := e.serviceAccount(t, name)
	serve := func() *server {
		return e.serve(t, name, "--kubeconfig", kubeconfig, "--guard", "Backstop", "--controllers", "poddefault-index")
	}
	s := serve()
	e.createSoon(t, envPodDefault(name, "env"), simplePod(name, "probe"), poddefault.Mark("env"))
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
	out, err := e.command(t, "doctor", "--kubeconfig", e.kubeconfig, "--configuration-name", name)
	if !strings.Contains(out, "the policy "+name+" stands in for it") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	injected := simplePod(name, "while-it-runs")
	e.create(t, injected)
	if len(injected.Spec.Containers[0].Env) != 1 {
		t.Error("a pod is not injected while the policy is in force")
	}
	eventually(t, "the index of both", func(ctx context.Context) (bool, error) { return e.indexed(ctx, name, 2) })
	// A param that the policy knows of is not yet one that it has: both must be refused once.
	s.kill(t)
	for _, labels := range []map[string]string{{"use": "true"}, {"tier": "a"}} {
		eventually(t, "the policy to know of a PodDefault", func(ctx context.Context) (bool, error) {
			pod := simplePod(name, "probe")
			pod.Labels = labels
			return apierrors.IsForbidden(e.client.Create(ctx, pod, client.DryRunAll)), nil
		})
	}

	const many = 1000
	var matching, others []*corev1.Pod
	for i := range many {
		pod := simplePod(name, fmt.Sprintf("matching-%d", i))
		if i%2 == 1 {
			pod.Labels = map[string]string{"tier": []string{"a", "b"}[i/2%2]}
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
	excluded.Annotations = map[string]string{poddefault.ExcludeAnnotation: "true"}
	e.create(t, excluded)
	mirror := simplePod(name, "mirror")
	mirror.Annotations = map[string]string{poddefault.MirrorAnnotation: "x"}
	mirror.Spec.NodeName = "some-node"
	mirror.Spec.AutomountServiceAccountToken = nil
	e.create(t, mirror)

	// A definition that somebody deletes while nobody serves: kube-apiserver finds out when
	// it begins to follow the kind anew, and then refuses every pod. Doctor says before
	// that what to do.
	definitions, err := apiextensionsclient.NewForConfig(e.config)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() {
		t.Helper()
		if err := definitions.CustomResourceDefinitions().Delete(t.Context(), backstop.CRD, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	out, err = e.command(t, "doctor", "--kubeconfig", e.kubeconfig, "--configuration-name", name)
	if err == nil || !strings.Contains(out, backstop.CRD+" is missing") || !strings.Contains(out, "sallyport manifests --part crd") {
		t.Errorf("doctor: %v\n%s", err, out)
	}

	// A server heals it: it takes the policy away, and fails closed.
	s = serve()
	e.awaitPolicy(t, name, admissionregistrationv1.Fail)
	eventuallyWithin(t, 2*time.Minute, "other pods to be admitted again", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "healed")
		pod.Labels = nil
		err := e.client.Create(ctx, pod, client.DryRunAll)
		return err == nil, err
	})
	eventually(t, "the log to say what to do", func(context.Context) (bool, error) {
		return strings.Contains(s.log.String(), "install it again"), nil
	})
	e.installIndexes(t, definitions)
	e.awaitPolicy(t, name, admissionregistrationv1.Ignore)
	eventuallyWithin(t, time.Minute, "the index to be back", func(ctx context.Context) (bool, error) { return e.indexed(ctx, name, 2) })
	again := simplePod(name, "again")
	e.create(t, again)
	if len(again.Spec.Containers[0].Env) != 1 {
		t.Error("a pod is not injected after all that")
	}
	if strings.Contains(s.log.String(), "forbidden") {
		t.Errorf("the server lacks a right:\n%s", s.log)
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
	if err != nil || !strings.HasPrefix(out, strings.Join(want, "\n")+"\n") || !strings.Contains(out, "poddefaultindexes.sallyport.io of ") {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
}

// indexed tells whether a namespace has an index of so many objects.
func (e *env) indexed(ctx context.Context, namespace string, objects int) (bool, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "--kubeconfig", e.kubeconfig,
		"--namespace", namespace, "get", "poddefaultindexes", "poddefaults", "--output", "jsonpath={.spec.objects}").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("%w: %s", err, out)
	}
	return string(out) == fmt.Sprint(objects), nil
}

// installIndexes creates the definition of indexes.
func (e *env) installIndexes(t *testing.T, definitions apiextensionsclient.CustomResourceDefinitionsGetter) {
	t.Helper()
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	var index *apiextensionsv1.CustomResourceDefinition
	for _, definition := range all {
		if definition.Name == backstop.CRD {
			index = definition
		}
	}
	eventuallyWithin(t, 2*time.Minute, "the definition to be gone, and there again", func(ctx context.Context) (bool, error) {
		_, err := definitions.CustomResourceDefinitions().Create(ctx, index, metav1.CreateOptions{})
		return err == nil, err
	})
}

// serviceAccount applies the rights that manifests prints, and returns a kubeconfig with
// these and no others.
func (e *env) serviceAccount(t *testing.T, name string) string {
	t.Helper()
	printed, err := exec.CommandContext(t.Context(), e.binary, "manifests", "--service", name+"/webhooks", "--configuration-name", name,
		"--part", "rbac").Output()
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
	processtest.Eventually(t.Context(), t, limit, what, condition)
}
